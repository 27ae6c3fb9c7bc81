import { Effect, Schedule } from "effect"
import pg from "pg"
import type { PluginError } from "../../core/errors.ts"
import { cannotStart, reasonOf } from "./failure.ts"

const oldestMajor = 15

/**
 * A server that is just starting, for example in another container, refuses connections for a
 * moment.
 */
const startRetries = Schedule.max([Schedule.spaced("500 millis"), Schedule.recurs(9)])
const passing = new Set(["ECONNREFUSED", "57P03"])

interface NotReady {
  readonly error: unknown
}

const askVersion = async (address: pg.ClientConfig, limitMs: number) => {
  const client = new pg.Client({
    ...address,
    connectionTimeoutMillis: limitMs,
    query_timeout: limitMs,
  })
  client.on("error", () => {})
  try {
    await client.connect()
    const { rows } = await client.query<{ number: string; text: string; identity: string }>(
      `select current_setting('server_version_num') as number, current_setting('server_version') as text,
        current_database() || ' ' || pg_postmaster_start_time() as identity`,
    )
    const { number, text = "", identity } = rows[0] ?? {}
    return { number: Number(number), text, identity }
  } finally {
    await client.end().catch(() => {})
  }
}

const isPassing = ({ error }: NotReady): boolean => {
  const errors = error instanceof AggregateError ? error.errors : [error]
  return errors.every(
    (one) => one instanceof Error && "code" in one && passing.has(String(one.code)),
  )
}

/** Host, port and database, without the password. */
export const nameOf = (address: pg.ClientConfig): string => {
  const { host, port, database } = new pg.Client(address)
  return `${host}:${port}/${database}`
}

/** Returns undefined when the version is new enough. */
export const refusalOf = (
  name: string,
  version: { readonly number: number; readonly text: string },
): string | undefined =>
  version.number >= oldestMajor * 10_000
    ? undefined
    : `the database ${name} is PostgreSQL ${version.text}, which is too old: ${oldestMajor} or newer is needed`

const reach = (address: pg.ClientConfig, limitMs: number) =>
  Effect.gen(function* () {
    const name = nameOf(address)
    const version = yield* Effect.tryPromise({
      try: () => askVersion(address, limitMs),
      catch: (error): NotReady => ({ error }),
    }).pipe(
      Effect.retry({ schedule: startRetries, while: isPassing }),
      Effect.mapError(({ error }) =>
        cannotStart(`the database ${name} can't be used: ${reasonOf(error)}`, error),
      ),
    )
    return { ...version, name }
  })

/**
 * Waits up to 5 s for a server that starts; refuses one that is too old, and a pooler at `address`
 * that is before another database than `direct`. Returns its version.
 */
export const checkServer = (
  address: pg.ClientConfig,
  limitMs: number,
  direct?: pg.ClientConfig,
): Effect.Effect<string, PluginError> =>
  Effect.gen(function* () {
    const server = yield* reach(address, limitMs)
    const refusal = refusalOf(server.name, server)
    if (refusal !== undefined) return yield* cannotStart(refusal)
    const behind = direct && (yield* reach(direct, limitMs))
    if (behind && behind.identity !== server.identity)
      return yield* cannotStart(
        `url (${server.name}) and directUrl (${behind.name}) lead to different databases: both must be the same one, through the pooler and past it`,
      )
    return server.text
  })
