import { Cause, Effect, Exit, type Scope } from "effect"
import { type Log, type Metrics, type PortError, repeat } from "../../core/index.ts"
import type { LedgerBilling } from "./ledger-billing.ts"
import type { Replica } from "./replica.ts"
import type { Settings } from "./settings.ts"

const stopWithin = "5 seconds"
const retry = { firstMs: 250, longestMs: 5_000 }

/** Settles what is kept as soon as the database takes it; looks for it again ever more rarely. */
const settleKept = ({ kept }: LedgerBilling, log: Log) => {
  let pauseMs = retry.firstMs
  const again = kept.settleAll.pipe(
    Effect.onExit((exit) =>
      Effect.sync(() => {
        pauseMs = Exit.isSuccess(exit) ? retry.firstMs : Math.min(2 * pauseMs, retry.longestMs)
      }),
    ),
  )
  return repeat(
    log,
    {
      event: "ledger.settlement_retry_failed",
      message: "the database still takes no settlements; it will be tried again",
      everyMs: () => pauseMs,
    },
    again,
  )
}

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
  /** What dead replicas have kept goes first: their calls then still have their holds. */
  const adopt = Effect.flatMap(replica.living, (living) =>
    billing.kept.adopt((id) => living.has(id)),
  )
  const takeOver = Effect.andThen(adopt, Effect.ignore(billing.kept.settleAll))
  // with settlements kept, the lease runs out by itself: their calls keep their holds meanwhile
  const release = billing.idle.pipe(
    Effect.andThen(Effect.ignore(billing.flushRefused)),
    Effect.andThen(billing.kept.settleAll),
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
    yield* Effect.ignore(takeOver)
    yield* settleKept(billing, log)
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
      billing.closeInDoubt.pipe(
        Effect.andThen(takeOver),
        Effect.andThen(sweep),
        Effect.andThen(billing.flushRefused),
        Effect.andThen(billing.sweepRefused),
      ),
    )
  })
}
