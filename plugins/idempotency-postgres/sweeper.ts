import { Effect, type Scope } from "effect"
import { sql } from "kysely"
import { type Clock, type Database, type Log, type PortError, repeat } from "../../core/index.ts"
import type { IdempotencyTables } from "./postgres-idempotency.ts"

const rowsPerStatement = 2_000

/**
 * Deletes expired rows, in small statements so that no lock is held for long. Returns the number of
 * deleted rows.
 */
export const sweepExpired = (database: Database, clock: Clock): Effect.Effect<number, PortError> =>
  Effect.gen(function* () {
    const now = new Date(clock.nowMs())
    let total = 0
    while (true) {
      const { numAffectedRows = 0n } = yield* database.run(() =>
        sql`
          DELETE FROM idempotency_key WHERE (account, mode, key) IN (
            SELECT account, mode, key FROM idempotency_key WHERE expires_at <= ${now} LIMIT ${rowsPerStatement} FOR UPDATE SKIP LOCKED)`.execute(
          database.queries<IdempotencyTables>(),
        ),
      )
      total += Number(numAffectedRows)
      if (numAffectedRows < rowsPerStatement) return total
    }
  })

/** At once and every hour. */
export const sweepHourly = (
  sweep: Effect.Effect<number, PortError>,
  log: Log,
): Effect.Effect<void, never, Scope.Scope> =>
  repeat(
    log,
    {
      event: "idempotency.sweep_failed",
      message: "expired idempotency keys could not be swept",
      everyMs: 3_600_000,
    },
    Effect.tap(sweep, (rows) =>
      Effect.sync(() =>
        log.debug("idempotency.keys_swept", "expired idempotency keys swept", { rows }),
      ),
    ),
  )
