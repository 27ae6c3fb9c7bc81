import type { Command } from "commander"
import { Effect } from "effect"
import { resolve, type Token, Tokens } from "../../core/tokens.ts"
import { defaultConfig, withStarted } from "./with-house.ts"

interface Options {
  readonly config: string
  readonly name: string
  readonly email?: string
  readonly test: boolean
  readonly json: boolean
}

const create = async (options: Options): Promise<void> => {
  const issued = await withStarted(
    options.config,
    () => [Tokens.keyIssuer as Token<unknown>],
    (house) => {
      if (!house.container.isRegistered(Tokens.keyIssuer.key, true)) return Effect.fail(new Error("No plugin of this deployment makes keys. Fix: add the plugin accounts."))
      const issuer = resolve(house.container, Tokens.keyIssuer)
      return issuer.issue({ name: options.name, test: options.test, ...(options.email !== undefined && { email: options.email }) })
    },
  )
  process.stdout.write(options.json ? `${JSON.stringify(issued)}\n` : `${issued.key}\n`)
  if (!options.json) process.stderr.write(`Key '${issued.name}' (${issued.id}) of account ${issued.account}. It is shown only now.\n`)
}

export const addKeys = (program: Command): void => {
  const keys = program.command("keys").description("API keys.")
  keys
    .command("create")
    .description("Makes an API key and prints it. Works while the server runs.")
    .option("-c, --config <file>", "config file of the deployment", defaultConfig)
    .option("-n, --name <name>", "what the key is for", "cli")
    .option("-e, --email <address>", "account; the first one unless told")
    .option("-t, --test", "a test key: lives in the sandbox, nothing is billed", false)
    .option("--json", "print the whole answer as JSON", false)
    .action(create)
}
