import { Cause, Effect, type Scope } from "effect"
import { type Log, type Metrics, type PortError, repeat } from "../../core/index.ts"
import type { LedgerBilling } from "./ledger-billing.ts"
import type { Replica } from "./replica.ts"
import type { Settings } from "./settings.ts"

const stopWithin = "5 seconds"

/**
 * Renews the lease and sweeps until the Scope closes; then waits for the last statements and
 * releases the lease.
 */
export const keepUp = (
  billing: LedgerBilling,
  replica: Replica,
  settings: Settings,
  log: Log,
  metrics: Metrics,
): Effect.Effect<void, PortError, Scope.Scope> => {
  const expired = metrics.counter(
    "rakit_calls_expired_total",
    "Calls that a dead replica left open, or that were open beyond their time.",
  )
  const sweep = Effect.tap(replica.sweep, (calls) =>
    Effect.sync(() => {
      if (calls === 0) return
      expired.add(calls)
      log.warn(
        "ledger.calls_expired",
        "calls of dead replicas, or beyond their time, expired; their holds and slots are free again",
        { calls },
      )
    }),
  )
  const release = billing.idle.pipe(
    Effect.andThen(replica.release),
    Effect.timeout(stopWithin),
    Effect.catchCause((cause) =>
      Effect.sync(() =>
        log.warn(
          "ledger.lease_not_released",
          "the lease of the ledger was not released; it ends by itself",
          {
            cause: Cause.pretty(cause),
          },
        ),
      ),
    ),
  )
  return Effect.gen(function* () {
    yield* Effect.acquireRelease(replica.renew, () => release)
    yield* repeat(
      log,
      {
        event: "ledger.heartbeat_failed",
        message: "the ledger's heartbeat failed; it will be tried again",
        everyMs: settings.heartbeatMs,
      },
      replica.renew,
    )
    yield* repeat(
      log,
      {
        event: "ledger.sweep_failed",
        message: "the ledger's sweep failed; it will be tried again",
        everyMs: settings.sweepMs,
      },
      Effect.andThen(billing.closeInDoubt, sweep),
    )
  })
}
