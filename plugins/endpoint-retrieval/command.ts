import type { Command } from "../../core/ports/command.ts"

/** `rakit retrieval audit`. */
export const command: Command = {
  group: { name: "retrieval", about: "The index of knowledge files." },
  name: "audit",
  about:
    "Compares, for each account, what the index finds with an exact scan of all vectors (recall@10), and chunks with vectors. Works beside a server, changes nothing. Exits with 1 when a chunk has no vector, a vector no chunk, or the index misses more than one hit of twenty.",
  arguments: [],
  config: "config file of the deployment",
  options: [
    { flags: "--account <id>", about: "one account only" },
    { flags: "--json", about: "print JSON" },
  ],
  load: async () => (await import("./cli/audit-command.ts")).auditCommand,
}
