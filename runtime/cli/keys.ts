import type { Effect } from "effect"
import type { ApiError, PortError } from "../../core/errors.ts"
import type { KeyIssuer, ListedKey } from "../../core/ports/identity.ts"
import { Tokens } from "../../core/tokens.ts"
import { formatTable } from "./table.ts"
import { withProvider } from "./with-deployment.ts"

interface Options {
  readonly config: string
  readonly json: boolean
}

export interface CreateOptions extends Options {
  readonly name: string
  readonly email?: string
  readonly test: boolean
  readonly scope?: readonly string[]
}

export interface ListOptions extends Options {
  readonly email?: string
}

const withIssuer = <A>(
  config: string,
  work: (issuer: KeyIssuer) => Effect.Effect<A, ApiError | PortError>,
): Promise<A> => withProvider(config, Tokens.keyIssuer, "makes keys", work)

const printJson = (value: unknown) => process.stdout.write(`${JSON.stringify(value)}\n`)

export const createKey = async ({
  config,
  name,
  email,
  test,
  scope,
  json,
}: CreateOptions): Promise<void> => {
  const request = {
    name,
    test,
    ...(email !== undefined && { email }),
    ...(scope && { scopes: scope }),
  }
  const issued = await withIssuer(config, (issuer) => issuer.issue(request))
  if (json) return void printJson(issued)
  process.stdout.write(`${issued.key}\n`)
  process.stderr.write(
    `Key '${issued.name}' (${issued.id}) of account ${issued.account}. It is shown only now.\n`,
  )
}

const day = (ms: number | undefined): string =>
  ms === undefined ? "-" : new Date(ms).toISOString().slice(0, 10)

const cells = (key: ListedKey) => [
  key.id,
  key.prefix,
  key.test ? "test" : "live",
  day(key.createdMs),
  day(key.lastUsedMs),
  day(key.revokedMs),
  key.scopes.join(","),
  key.name,
]

export const listKeys = async ({ config, email, json }: ListOptions): Promise<void> => {
  const keys = await withIssuer(config, (issuer) =>
    issuer.list(email === undefined ? {} : { email }),
  )
  if (json) return void printJson(keys)
  process.stdout.write(
    formatTable([
      ["ID", "KEY", "MODE", "CREATED", "USED", "REVOKED", "SCOPES", "NAME"],
      ...keys.map(cells),
    ]),
  )
}

export const revokeKey = async (id: string, { config, json }: Options): Promise<void> => {
  const key = await withIssuer(config, (issuer) => issuer.revoke(id))
  if (json) return void printJson(key)
  process.stdout.write(
    `Key '${key.name}' (${key.id}) of account ${key.account} is revoked. Servers that run refuse it within 5 s.\n`,
  )
}
