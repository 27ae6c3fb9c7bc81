import { Command, Option } from "commander"
import { defaultConfig, wholeNumber, withConfig, withJson } from "./cli/config-option.ts"
import { addConfiguredCommands, addPluginCommands } from "./cli/plugin-commands.ts"
import { addSetupCommands } from "./cli/setup-commands.ts"
import { version } from "./version.ts"

const addBackup = (program: Command): void => {
  withJson(
    withConfig(
      program
        .command("backup")
        .description(
          "Writes the database, the blobs and the secret key into a new folder, beside a server or without one. Keep the folder secret: it holds the key that encrypts the rest.",
        ),
    ),
  )
    .requiredOption("-o, --out <folder>", "a folder that is empty or does not exist")
    .action(async (file, { config, out, json }) =>
      (await import("./cli/backup.ts")).backup(config ?? file, out, json),
    )
  withJson(
    withConfig(
      program
        .command("restore")
        .description("Restores a backup into a deployment that has no data yet."),
    ),
  )
    .requiredOption("-f, --from <folder>", "what `rakit backup` wrote")
    .action(async (file, { config, from, json }) =>
      (await import("./cli/restore.ts")).restore(config ?? file, from, json),
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
        .argParser(wholeNumber(1, 64)),
    )
    .option("--verify", "compare all blobs again, also those that an earlier run compared", false)
    .option("--overwrite", "replace other blobs of the target under the same keys", false)
    .option("--journal <file>", "what was copied (default: in the data folder of <from>)")
    .option("--json", "print the result as JSON", false)
    .action(async (from, to, options) =>
      (await import("./cli/storage-copy.ts")).copyStorage(from, to, options),
    )
}

const isYaml = (arg: string): boolean => /\.ya?ml$/.test(arg)

/** Separates ids of models from the config file, which is the argument that ends like one. */
const configAmong = (
  args: readonly string[],
  option: string | undefined,
): { readonly ids: readonly string[]; readonly config: string } => {
  return {
    ids: args.filter((arg) => !isYaml(arg)),
    config: option ?? args.findLast(isYaml) ?? defaultConfig,
  }
}

const addModels = (program: Command): void => {
  const models = program.command("models").description("Model files on this machine.")
  const some = (name: string, about: string) =>
    models
      .command(name)
      .description(about)
      .argument(
        "[ids...]",
        "models, or adapters as MODEL:ADAPTER (default: all); a config file, too",
      )
      .option("-c, --config <file>", `config file of the deployment (default: "${defaultConfig}")`)
  withJson(
    withConfig(
      models.command("list").description("The models of a config file, and what of them is here."),
    ),
  ).action(async (file, { config = file, json }) =>
    (await import("./cli/models.ts")).listModels({ config, json }),
  )
  withJson(some("pull", "Pulls what is missing."))
    .option(
      "--update",
      "ask sources without a sha256 again, and renew models.lock.yaml beside the config file",
      false,
    )
    .option(
      "--lock [file.yaml]",
      "also lock the sources whose sha256 the config file has (default: models.lock.yaml beside it)",
    )
    .action(async (args, options) => {
      // without a file of its own, the option takes the next argument
      const isId = typeof options.lock === "string" && !isYaml(options.lock)
      const all = isId ? [...args, options.lock] : args
      const { ids, config } = configAmong(all, options.config)
      const lock = isId ? true : options.lock
      return (await import("./cli/models.ts")).pullModels(ids, { ...options, config, lock })
    })
  withJson(
    some("verify", "Hashes the files again; exits with 1 when one is damaged or missing."),
  ).action(async (args, options) => {
    const { ids, config } = configAmong(args, options.config)
    return (await import("./cli/models.ts")).verifyModels(ids, { ...options, config })
  })
}

const addKeys = (program: Command): void => {
  const keys = program.command("keys").description("API keys.")
  const whole = "print the whole answer as JSON"
  const create = withJson(
    withConfig(
      keys
        .command("create")
        .description("Makes an API key and prints it. Works while the server runs."),
    ),
    whole,
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
    .action(async (file, options) =>
      (await import("./cli/keys.ts")).createKey({ config: file, ...options }),
    )
  withJson(
    withConfig(keys.command("list").description("The keys of an account, the newest first.")),
    whole,
  )
    .option("-e, --email <address>", "account (default: the first one)")
    .action(async (file, options) =>
      (await import("./cli/keys.ts")).listKeys({ config: file, ...options }),
    )
  withJson(
    withConfig(
      keys
        .command("revoke")
        .description("Revokes a key, also while the server runs.")
        .argument("<id>", "as `keys list` shows it"),
    ),
    whole,
  ).action(async (id, file, options) =>
    (await import("./cli/keys.ts")).revokeKey(id, { config: file, ...options }),
  )
}

const addLedger = (program: Command): void => {
  const ledger = program
    .command("ledger")
    .description("Proofs and sums of the money. Both work while the server runs.")
  withConfig(
    ledger
      .command("verify")
      .description(
        "Proves the ledger's invariants from its rows; exits with 1 when one is broken.",
      ),
  )
    .option("--json", "print the proof as JSON", false)
    .action(async (file, options) =>
      (await import("./cli/ledger.ts")).verifyLedger({ config: file, ...options }),
    )
  withConfig(
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
    .action(async (file, options) =>
      (await import("./cli/ledger.ts")).reportLedger({ config: file, ...options }),
    )
}

const addUpkeep = (program: Command): void => {
  withConfig(
    program
      .command("fsck")
      .description(
        "Compares ledger, usage, batches, files, blobs, deliveries and queue with each other, beside a server or without one. Changes nothing without --repair (but brings tables up to date, as every command). Exits with 1 when something is left.",
      ),
  )
    .option("--repair", "also repair what can be repaired", false)
    .addOption(new Option("--mend", "the former name of --repair").hideHelp())
    .option("--json", "print the findings as JSON", false)
    .action(async (file, { config = file, repair, mend, json }) =>
      (await import("./cli/fsck.ts")).fsck(config, { repair: repair || Boolean(mend), json }),
    )
  withConfig(
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
    // 1 says that the answer is another one
    .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : 2))
    .action(async (receipt, request, file, { config = file, ...options }) =>
      (await import("./cli/replay.ts")).replay(receipt, request, config, options),
    )
  withJson(
    withConfig(
      program
        .command("migrate")
        .description(
          "Brings the tables of all plugins up to date, and says what ran. `serve` does it too.",
        ),
    ),
  ).action(async (file, { config = file, json }) =>
    (await import("./cli/migrate.ts")).migrate(config, json),
  )
}

/** All commands. Each imports its module only when it is called, so that --help is quick. */
export const makeCli = (): Command => {
  const program = new Command("rakit")
    .description("Assembles an inference server from one config file.")
    .version(version)
    .showHelpAfterError("(rakit --help shows the commands)")
  withConfig(
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
    .action(async (file, { config = file, role }) =>
      (await import("./cli/serve.ts")).serve(config, role),
    )
  withJson(
    withConfig(
      program
        .command("check")
        .description(
          "Checks a config file and prints the assembled deployment: plugins, routes, models, meters, limits. Starts nothing.",
        ),
    ),
  ).action(async (file, { config = file, json }) =>
    (await import("./cli/check.ts")).check(config, json),
  )
  addSetupCommands(program)
  addModels(program)
  addKeys(program)
  addLedger(program)
  addPluginCommands(program, defaultConfig)
  addBackup(program)
  addStorage(program)
  addUpkeep(program)
  return program
}

export const main = async (argv: readonly string[]): Promise<void> => {
  const program = makeCli()
  try {
    await addConfiguredCommands(program, argv.slice(2), defaultConfig)
  } catch (error) {
    const { refuse } = await import("./cli/refuse.ts")
    refuse(error)
  }
  await program.parseAsync(argv)
}
