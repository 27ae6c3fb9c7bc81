import { Cause, Effect } from "effect"
import { sql } from "kysely"
import type { Clock, Database, Log, PortError } from "../../core/index.ts"
import type { IdempotencyTables } from "./postgres-idempotency.ts"

const rowsPerStatement = 2_000

/** Deletes expired rows, in small statements so that no lock is held for long. Returns the number of deleted rows. */
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

/** Sweeps now and every hour, until it is interrupted. A failure is logged, and the next hour tries again. */
export const sweepHourly = (
  sweep: Effect.Effect<number, PortError>,
  log: Log,
): Effect.Effect<never> =>
  sweep.pipe(
    Effect.tap((rows) =>
      Effect.sync(() =>
        log.debug("idempotency.keys_swept", "expired idempotency keys swept", { rows }),
      ),
    ),
    Effect.catchCause((cause) =>
      Effect.sync(() =>
        log.warn("idempotency.sweep_failed", "expired idempotency keys could not be swept", {
          cause: Cause.pretty(cause),
        }),
      ),
    ),
    Effect.andThen(Effect.sleep("1 hour")),
    Effect.forever,
  )
