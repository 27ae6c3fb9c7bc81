import { Schema } from "effect"
import { secretSetting, setting, urlOf } from "../../core/index.ts"

const isPostgresUrl = (text: string): boolean =>
  text === "" || ["postgres:", "postgresql:"].includes(urlOf(text)?.protocol ?? "")

const positive = (fallback: number, description: string) =>
  setting(Schema.Int.check(Schema.isGreaterThan(0)), fallback, description)

const url = (description: string) =>
  secretSetting(
    Schema.String.check(
      Schema.makeFilter(
        (text) => isPostgresUrl(text) || "is no postgres://user:password@host:port/database",
      ),
    ),
    description,
    "the URL of the database",
  )

export const Settings = Schema.Struct({
  url: url(
    "`postgres://user:password@host:port/database?sslmode=verify-full`. Empty: the embedded PostgreSQL, with its data in the deployment's folder.",
  ),
  directUrl: url(
    "Where `url` is a pooler in transaction mode (PgBouncer): the server itself, for migrations and whatever else needs a session. Empty: `url` is the server.",
  ),
  maxConnections: positive(
    20,
    "Most connections of this process; all processes together must stay under the server's `max_connections`.",
  ),
  maxWaiting: positive(1_000, "Most callers that wait for a connection; further ones are refused."),
  connectTimeoutMs: positive(
    10_000,
    "Time limit for opening a connection, and for waiting for a free one.",
  ),
  statementTimeoutMs: positive(30_000, "Time limit for a statement; migrations have none."),
  idleInTransactionTimeoutMs: positive(
    60_000,
    "A transaction that is idle for this long is ended, so that a stuck process does not keep its locks.",
  ),
})

export type Settings = typeof Settings.Type
