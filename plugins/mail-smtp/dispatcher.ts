import { Cause, Effect, Fiber, Queue, type Scope, Semaphore } from "effect"
import type { Log, PortError } from "../../core/index.ts"
import type { ClaimedMail, OutboxRows } from "./outbox-rows.ts"

/** Most mails delivered at once by this replica. */
export const maxAtOnce = 4
const shortestMs = 10
/**
 * The longest pause between two polls: mails of other replicas and retries are noticed this late.
 */
const longestMs = 3_000
const stopWithin = "5 seconds"

export interface Dispatcher {
  /**
   * Call it when a mail was queued. While its transaction is open the row is not visible yet, so
   * pauses between polls start short and double.
   */
  wake(): void
  /** Runs until the Scope closes, then waits for the deliveries in flight. */
  readonly run: Effect.Effect<void, never, Scope.Scope>
}

/** The attempt, whose failure is logged and ignored. */
const logFailures =
  (attempt: (claimed: ClaimedMail) => Effect.Effect<void, PortError>, log: Log) =>
  (claimed: ClaimedMail): Effect.Effect<void> =>
    attempt(claimed).pipe(
      Effect.tapCause((cause) =>
        Effect.sync(() =>
          log.warn(
            "mail.attempt_failed",
            "an attempt to deliver a mail failed; it will be tried again when its lease ends",
            { cause: Cause.pretty(cause) },
          ),
        ),
      ),
      Effect.ignore,
    )

/** `woken` is a sliding queue of one element. */
export const makeDispatcher = (
  woken: Queue.Queue<true>,
  rows: Pick<OutboxRows, "claim">,
  attempt: (claimed: ClaimedMail) => Effect.Effect<void, PortError>,
  log: Log,
): Dispatcher => {
  const permits = Semaphore.makeUnsafe(maxAtOnce)
  const inFlight = new Set<Fiber.Fiber<void>>()
  let pauseMs = shortestMs

  const deliver = logFailures(attempt, log)
  const start = (claimed: ClaimedMail) =>
    Effect.map(
      Effect.forkDetach(Effect.ensuring(deliver(claimed), permits.release(1)), {
        startImmediately: true,
      }),
      (fiber) => {
        inFlight.add(fiber)
        fiber.addObserver(() => inFlight.delete(fiber))
      },
    )
  const pause = Effect.suspend(() =>
    Effect.map(Effect.timeoutOption(Queue.take(woken), pauseMs), (wake) => {
      pauseMs = wake._tag === "Some" ? shortestMs : Math.min(longestMs, pauseMs * 2)
    }),
  )
  /**
   * Starts one delivery, or pauses when no mail is due. A claimed mail is always started: otherwise
   * it would wait for its lease to end.
   */
  const turn = Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      yield* restore(permits.take(1))
      const claimed = yield* rows.claim.pipe(Effect.onError(() => permits.release(1)))
      if (claimed) return yield* start(claimed)
      yield* permits.release(1)
      yield* restore(pause)
    }),
  )
  const loop = turn.pipe(
    Effect.catchCause((cause) =>
      Effect.suspend(() => {
        log.warn("mail.poll_failed", "the mail outbox could not be read; it will be tried again", {
          cause: Cause.pretty(cause),
        })
        return Effect.sleep(longestMs)
      }),
    ),
    Effect.forever,
  )
  const drain = permits
    .take(maxAtOnce)
    .pipe(
      Effect.timeoutOption(stopWithin),
      Effect.andThen(
        Effect.suspend(() => Effect.forEach([...inFlight], (fiber) => Fiber.interrupt(fiber))),
      ),
      Effect.asVoid,
    )
  return {
    wake: () => void Queue.offerUnsafe(woken, true),
    run: Effect.acquireRelease(Effect.void, () => drain).pipe(
      Effect.andThen(Effect.forkScoped(loop)),
      Effect.asVoid,
    ),
  }
}
