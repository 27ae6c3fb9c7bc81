import { Effect, Schema } from "effect"

const isPostgresUrl = (text: string): boolean => {
  if (text === "") return true
  return URL.canParse(text) && ["postgres:", "postgresql:"].includes(new URL(text).protocol)
}

const positive = (fallback: number) =>
  Schema.Int.check(Schema.isGreaterThan(0))
    .annotate({ default: fallback })
    .pipe(Schema.withDecodingDefaultKey(Effect.succeed(fallback)))

const Url = Schema.RedactedFromValue(
  Schema.String.check(
    Schema.makeFilter(
      (text) => isPostgresUrl(text) || "is no postgres://user:password@host:port/database",
    ),
  ),
  {
    label: "the URL of the database",
  },
)

export const Settings = Schema.Struct({
  /**
   * `postgres://user:password@host:port/database?sslmode=verify-full`. Empty: the embedded
   * PostgreSQL, with its data in the deployment's folder.
   */
  url: Url.pipe(Schema.withDecodingDefaultKey(Effect.succeed(""))),
  /**
   * Where `url` is a pooler in transaction mode (PgBouncer): the server itself, for migrations and
   * whatever else needs a session. Empty: `url` is the server.
   */
  directUrl: Url.pipe(Schema.withDecodingDefaultKey(Effect.succeed(""))),
  /**
   * Most connections of this process; all processes together must stay under the server's
   * `max_connections`.
   */
  maxConnections: positive(20),
  /** Most callers that wait for a connection; further ones are refused. */
  maxWaiting: positive(1_000),
  /** Time limit for opening a connection, and for waiting for a free one. */
  connectTimeoutMs: positive(10_000),
  /** Time limit for a statement; migrations have none. */
  statementTimeoutMs: positive(30_000),
  /**
   * A transaction that is idle for this long is ended, so that a stuck process does not keep its
   * locks.
   */
  idleInTransactionTimeoutMs: positive(60_000),
})

export type Settings = typeof Settings.Type
