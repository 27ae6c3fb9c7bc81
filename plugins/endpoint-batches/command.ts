import type { Command } from "../../core/ports/command.ts"

const maxLinesAtOnce = 1024

const readLinesAtOnce = (typed: string): number => {
  const lines = Number(typed)
  if (!/^\d+$/.test(typed) || lines < 1 || lines > maxLinesAtOnce)
    throw new Error(`It must be 1 to ${maxLinesAtOnce}.`)
  return lines
}

/**
 * `rakit batch run`. It needs neither this plugin's tables nor its routes, so the config file need
 * not name the plugin.
 */
export const command: Command = {
  group: { name: "batch", about: "Files of requests, without a server." },
  name: "run",
  about:
    "Runs a JSONL file of requests, in the format of batches, on the models of a config file: offline, with no database, and nobody is billed. Exits with 0, or with 1 when lines failed or the file was refused; interrupted (130), it goes on with --resume.",
  arguments: [{ name: "file", about: "one request a line: custom_id, method, url, body" }],
  config: "config file whose models and endpoints it uses",
  options: [
    {
      flags: "-o, --out <file>",
      about: "the answers, in the order of the lines (default: <file> with .output.jsonl)",
    },
    {
      flags: "--errors <file>",
      about: "the lines that failed, made only for some (default: with .errors.jsonl)",
    },
    {
      flags: "--endpoint <url>",
      about: "what every line must target, as /v1/embeddings (default: that of the first line)",
    },
    {
      flags: "--concurrency <n>",
      about: "lines at once, 1 to 1024 (default: linesAtOnce of the plugin endpoint-batches, 64)",
      read: readLinesAtOnce,
    },
    { flags: "--resume", about: "go on where an interrupted run of the same file ended" },
    { flags: "--json", about: "print the summary as JSON" },
  ],
  load: async () => (await import("./cli/run-file-command.ts")).runFileCommand,
}
