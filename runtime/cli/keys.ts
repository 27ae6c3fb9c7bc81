import { Effect } from "effect"
import { resolve, type Token, Tokens } from "../../core/tokens.ts"
import { withStarted } from "./with-house.ts"

export interface KeyOptions {
  readonly config: string
  readonly name: string
  readonly email?: string
  readonly test: boolean
  readonly json: boolean
}

export const createKey = async (options: KeyOptions): Promise<void> => {
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
