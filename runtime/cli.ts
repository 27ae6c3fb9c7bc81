import { fileURLToPath } from "node:url"
import { Command, InvalidArgumentError, Option } from "commander"
import { addConfiguredCommands, addPluginCommands } from "./cli/plugin-commands.ts"
import { version } from "./version.ts"

/** The starter deployment; this file runs from the sources or from `dist/`. */
const starter = fileURLToPath(
  new URL(
    import.meta.url.includes("/dist/") ? "../../config/starter.yaml" : "../config/starter.yaml",
    import.meta.url,
  ),
)

const withConfigArgument = (command: Command) =>
  command.argument("[config]", "config file of the deployment", starter)
const withConfigOption = (command: Command) =>
  command.option("-c, --config <file>", "config file of the deployment", starter)

/** `-c` or a plain argument names the config file. */
const withConfig = (command: Command) =>
  withConfigArgument(command).option("-c, --config <file>", "the same, as an option")

const addBackup = (program: Command): void => {
  withConfig(
    program
      .command("backup")
      .description(
        "Writes the database, the blobs and the secret key into a new folder, beside a server or without one. Keep the folder secret: it holds the key that encrypts the rest.",
      ),
  )
    .requiredOption("-o, --out <folder>", "a folder that is empty or does not exist")
    .action(async (file, { config, out }) =>
      (await import("./cli/backup.ts")).backup(config ?? file, out),
    )
  withConfig(
    program
      .command("restore")
      .description("Restores a backup into a deployment that has no data yet."),
  )
    .requiredOption("-f, --from <folder>", "what `rakit backup` wrote")
    .action(async (file, { config, from }) =>
      (await import("./cli/restore.ts")).restore(config ?? file, from),
    )
}

const addStorage = (program: Command): void => {
  program
    .command("storage")
    .description("Blobs: files, results of batches, documents.")
    .command("copy")
    .description(
      "Copies the blobs of one deployment's storage to that of another, as from disk to S3, and compares each by length and digest. Works beside a running server. Run again, it goes on where it was, and copies what is new.",
    )
    .argument("<from>", "config file whose storage is read")
    .argument("<to>", "config file whose storage is written; no server uses it yet")
    .addOption(
      new Option("-p, --parallel <count>", "blobs at once, 1 to 64")
        .default(8)
        .argParser((text) => {
          const count = /^\d{1,2}$/.test(text) ? Number(text) : 0
          if (count >= 1 && count <= 64) return count
          throw new InvalidArgumentError("Expected a whole number from 1 to 64.")
        }),
    )
    .option("--verify", "compare all blobs again, also those that an earlier run compared", false)
    .option("--overwrite", "replace other blobs of the target under the same keys", false)
    .option("--journal <file>", "what was copied (default: in the data folder of <from>)")
    .option("--json", "print the result as JSON", false)
    .action(async (from, to, options) =>
      (await import("./cli/storage-copy.ts")).copyStorage(from, to, options),
    )
}

const addModels = (program: Command): void => {
  const models = program.command("models").description("Model files on this machine.")
  withConfigOption(
    models.command("list").description("The models of a config file, and what of them is here."),
  ).action(async (options) => (await import("./cli/models.ts")).listModels(options))
  withConfigOption(
    models
      .command("pull")
      .description("Pulls what is missing.")
      .argument("[ids...]", "models (default: all)"),
  )
    .option(
      "--update",
      "ask sources without a sha256 again, and renew models.lock.yaml beside the config file",
      false,
    )
    .option(
      "--lock [file]",
      "also lock the sources whose sha256 the config file has (default: models.lock.yaml beside it)",
    )
    .action(async (ids, options) => (await import("./cli/models.ts")).pullModels(ids, options))
  withConfigOption(
    models
      .command("verify")
      .description("Hashes the files again; exits with 1 when one is damaged or missing.")
      .argument("[ids...]", "models (default: all)"),
  ).action(async (ids, options) => (await import("./cli/models.ts")).verifyModels(ids, options))
}

const addKeys = (program: Command): void => {
  const keys = program.command("keys").description("API keys.")
  const withJson = (command: Command) =>
    command.option("--json", "print the whole answer as JSON", false)
  const create = withJson(
    withConfigOption(
      keys
        .command("create")
        .description("Makes an API key and prints it. Works while the server runs."),
    ),
  )
  create
    .option("-n, --name <name>", "what the key is for", "cli")
    .option("-e, --email <address>", "account (default: the first one)")
    .option("-t, --test", "a test key: lives in the sandbox, nothing is billed", false)
    .option(
      "-s, --scope <id>",
      "an endpoint that it reaches, as in chat.completions; may come again (default: all)",
      (id: string, ids: readonly string[] = []) => [...ids, id],
    )
    .action(async (options) => (await import("./cli/keys.ts")).createKey(options))
  withJson(
    withConfigOption(keys.command("list").description("The keys of an account, the newest first.")),
  )
    .option("-e, --email <address>", "account (default: the first one)")
    .action(async (options) => (await import("./cli/keys.ts")).listKeys(options))
  withJson(
    withConfigOption(
      keys
        .command("revoke")
        .description("Revokes a key, also while the server runs.")
        .argument("<id>", "as `keys list` shows it"),
    ),
  ).action(async (id, options) => (await import("./cli/keys.ts")).revokeKey(id, options))
}

const addLedger = (program: Command): void => {
  const ledger = program
    .command("ledger")
    .description("Proofs and sums of the money. Both work while the server runs.")
  withConfigOption(
    ledger
      .command("verify")
      .description(
        "Proves the ledger's invariants from its rows; exits with 1 when one is broken.",
      ),
  )
    .option("--json", "print the proof as JSON", false)
    .action(async (options) => (await import("./cli/ledger.ts")).verifyLedger(options))
  withConfigOption(
    ledger
      .command("report")
      .description("Sums of calls, tokens and costs (live keys), by the time of their admission."),
  )
    .option("--from <time>", "YYYY-MM-DD (UTC) or Unix seconds (default: the beginning)")
    .option("--to <time>", "the same; of a date, the whole day (default: now)")
    .option("--by <groups>", "some of account,key,model,day", "account")
    .option("--account <id>", "of one account only")
    .option("--json", "print JSON", false)
    .option("--csv", "print CSV", false)
    .action(async (options) => (await import("./cli/ledger.ts")).reportLedger(options))
}

/** All commands. Each imports its module only when it is called, so that --help is quick. */
export const makeCli = (): Command => {
  const program = new Command("rakit")
    .description("Assembles an inference server from one config file.")
    .version(version)
    .showHelpAfterError("(rakit --help shows the commands)")
  withConfigArgument(
    program.command("serve").description("Starts the server and runs until SIGTERM or SIGINT."),
  )
    .addOption(
      new Option(
        "--role <role>",
        "api: answers clients; worker: works through jobs (batches, webhooks); all: both",
      )
        .choices(["api", "worker", "all"])
        .default("all"),
    )
    .action(async (file, { role }) => (await import("./cli/serve.ts")).serve(file, role))
  withConfigArgument(
    program
      .command("check")
      .description(
        "Checks a config file and prints the assembled deployment: plugins, routes, models, meters, limits. Starts nothing.",
      ),
  ).action(async (file) => (await import("./cli/check.ts")).check(file))
  addModels(program)
  addKeys(program)
  addLedger(program)
  addPluginCommands(program, starter)
  addBackup(program)
  addStorage(program)
  withConfigArgument(
    program
      .command("fsck")
      .description(
        "Compares ledger, usage, batches, files, blobs, deliveries and queue with each other, beside a server or without one. Changes nothing without --repair (but brings tables up to date, as every command). Exits with 1 when something is left.",
      ),
  )
    .option("--repair", "also repair what can be repaired", false)
    .addOption(new Option("--mend", "the former name of --repair").hideHelp())
    .option("--json", "print the findings as JSON", false)
    .action(async (file, { repair, mend, json }) =>
      (await import("./cli/fsck.ts")).fsck(file, { repair: repair || Boolean(mend), json }),
    )
  withConfigArgument(
    program
      .command("replay")
      .description(
        "Runs a call again by its receipt, offline, and says whether the answer is the same, byte by byte. Exits with 0 (equal), 1 (different) or 2 (not comparable), and names what differs.",
      )
      .argument("<receipt>", "what GET /v1/receipts/{call_id} answered, in a file")
      .argument("<request>", "the body of the call, in a file"),
  )
    .option("--jwks <file>", "also check the signature by these keys (/.well-known/jwks.json)")
    .option("--json", "print the result as JSON", false)
    .action(async (receipt, request, file, options) =>
      (await import("./cli/replay.ts")).replay(receipt, request, file, options),
    )
  withConfigArgument(
    program
      .command("migrate")
      .description(
        "Brings the tables of all plugins up to date, and says what ran. `serve` does it too.",
      ),
  ).action(async (file) => (await import("./cli/migrate.ts")).migrate(file))
  return program
}

export const main = async (argv: readonly string[]): Promise<void> => {
  const program = makeCli()
  try {
    await addConfiguredCommands(program, argv.slice(2), starter)
  } catch (error) {
    const { refuse } = await import("./cli/refuse.ts")
    refuse(error)
  }
  await program.parseAsync(argv)
}
