import { Effect, type Scope } from "effect"
import { sql } from "kysely"
import { type Clock, type Database, type Log, type PortError, repeat } from "../../core/index.ts"
import type { AccountsTables } from "./tables.ts"

const rowsPerStatement = 2_000
/**
 * Until then the use of an expired token is still recorded in the audit log, and the owner can see
 * what a key of the playground spent.
 */
const keepMs = 30 * 24 * 3_600_000

const tables = [
  { table: "accounts_attempt", key: "bucket", keepMs: 0, only: sql`true` },
  { table: "accounts_token", key: "sha256", keepMs, only: sql`true` },
  // others stay on their owner's list
  { table: "accounts_key", key: "id", keepMs, only: sql`playground` },
] as const

/**
 * Deletes expired attempts, tokens and keys, in small statements so that no lock is held for long.
 * Returns the number of deleted rows.
 */
export const sweepExpired = (database: Database, clock: Clock): Effect.Effect<number, PortError> =>
  Effect.gen(function* () {
    let total = 0
    for (const { table, key, keepMs, only } of tables) {
      const before = new Date(clock.nowMs() - keepMs)
      const [from, by] = [sql.table(table), sql.ref(key)]
      const sweep = () =>
        sql`DELETE FROM ${from} WHERE ${by} IN (SELECT ${by} FROM ${from} WHERE expires_at <= ${before} AND ${only} LIMIT ${rowsPerStatement} FOR UPDATE SKIP LOCKED)`.execute(
          database.queries<AccountsTables>(),
        )
      let swept: number
      do {
        swept = Number((yield* database.run(sweep)).numAffectedRows ?? 0n)
        total += swept
      } while (swept === rowsPerStatement)
    }
    return total
  })

/** At once and every ten minutes. */
export const keepSwept = (
  sweep: Effect.Effect<number, PortError>,
  log: Log,
): Effect.Effect<void, never, Scope.Scope> =>
  repeat(
    log,
    {
      event: "account.sweep_failed",
      message: "expired sessions, tokens, keys and attempts could not be swept",
      everyMs: 10 * 60_000,
    },
    Effect.tap(sweep, (rows) =>
      Effect.sync(() =>
        log.debug("account.rows_swept", "expired sessions, tokens, keys and attempts swept", {
          rows,
        }),
      ),
    ),
  )
