import { type Command, Option } from "commander"
import { ownConfig, wholeNumber, withConfig, withJson } from "./config-option.ts"

const several = (text: string, before: readonly string[] = []): readonly string[] => [
  ...before,
  ...text.split(",").map((name) => name.trim()),
]

const addInit = (program: Command): void => {
  withJson(
    program
      .command("init")
      .description("Writes a commented config file; asks on a terminal what no option says.")
      .argument("[file]", "the file to write", ownConfig)
      .option(
        "-s, --serve <kinds>",
        "chat, embeddings, rerank, images, audio, files, batches, retrieval (default: chat,embeddings)",
        several,
      )
      .option(
        "-m, --model <model>",
        "a GGUF file, a folder of safetensors, or a name of config/models; may come again (default: small ones)",
        several,
      )
      .option("-d, --database <kind>", "embedded, postgres (DATABASE_URL) or none")
      .option("--storage <kind>", "disk or s3")
      .option("-y, --yes", "ask nothing", false)
      .option("-c, --config <file>", "the file to write, as an option")
      .option("--force", "replace a file that is there", false),
  ).action(async (file, { config = file, ...options }) =>
    (await import("./init.ts")).init(config, options),
  )
}

const addDoctor = (program: Command): void => {
  withJson(
    withConfig(
      program
        .command("doctor")
        .description(
          "Looks at machine, config file, port, database, storage and models, and says how to mend what is wrong. Exits with 1 when there is a problem.",
        ),
    ),
  ).action(async (file, { config = file, json }) =>
    (await import("./doctor.ts")).doctor(config, { json }),
  )
}

const addBench = (program: Command): void => {
  withJson(
    program
      .command("bench")
      .description(
        "Puts load on a running server and says how fast it answers: tokens a second, first token, 95th percentile.",
      )
      .argument("[url]", "the server (default: http://127.0.0.1:8080, or that of -c)"),
  )
    .option("-c, --config <file>", "config file of a server here: its address, and the first key")
    .option("-k, --key <key>", "API key (default: RAKIT_API_KEY)")
    .option("-m, --model <id>", "chat model (default: the cheapest)")
    .addOption(
      new Option("-n, --requests <count>", "requests in all")
        .default(32)
        .argParser(wholeNumber(1, 100_000)),
    )
    .addOption(
      new Option("-p, --parallel <count>", "requests at once")
        .default(4)
        .argParser(wholeNumber(1, 1_000)),
    )
    .addOption(
      new Option("-t, --max-tokens <count>", "tokens of each answer")
        .default(64)
        .argParser(wholeNumber(1, 100_000)),
    )
    .option(
      "--prompt <text>",
      "what is asked; each request adds its number, so that none is read from a cache",
    )
    .action(async (url, options) => (await import("./bench.ts")).bench(url, options))
}

const addCompletion = (program: Command): void => {
  program
    .command("completion")
    .description("Prints the completion of commands and options for a shell.")
    .argument("<shell>", "bash, zsh or fish")
    .addHelpText(
      "after",
      '\nbash: eval "$(rakit completion bash)" in ~/.bashrc; zsh: the same in ~/.zshrc; fish: rakit completion fish > ~/.config/fish/completions/rakit.fish',
    )
    .action(async (shell) => (await import("./completion.ts")).completion(program, shell))
}

/** The commands for the first hour and for looking after a server. */
export const addSetupCommands = (program: Command): void => {
  addInit(program)
  addDoctor(program)
  addBench(program)
  addCompletion(program)
}
