import type { Command } from "../../core/ports/command.ts"

/** `rakit keys hash`. It reads no config file. */
export const command: Command = {
  group: { name: "keys", about: "API keys." },
  name: "hash",
  about:
    "Makes an API key for the plugin identity-static: prints it once, and the hash for the config file.",
  arguments: [],
  options: [
    { flags: "-n, --name <name>", about: "what the key is for (default: app)" },
    { flags: "-t, --test", about: "a test key" },
    { flags: "--stdin", about: "hash the key on the standard input instead of making one" },
    { flags: "--json", about: "print JSON" },
  ],
  load: async () => (await import("./hash-command.ts")).hashCommand,
}
