import { Cause, Effect, Fiber, Queue, type Scope, Semaphore } from "effect"
import type { Log, PortError } from "../../core/index.ts"
import type { Claimed, OutboxRows } from "./outbox-rows.ts"

/** Mails on their way at once, in this replica. */
export const maxAtOnce = 4
const shortestMs = 10
/** How late mails of other replicas, and second attempts, may be noticed. */
const longestMs = 3_000
const stopWithin = "5 seconds"

export interface Dispatcher {
  /** A mail was queued. If its transaction is still open it is found a little later: pauses start short and double. */
  wake(): void
  /** Runs until the Scope closes, then waits for the mails that are on their way. */
  readonly run: Effect.Effect<void, never, Scope.Scope>
}

/** `woken`: a sliding queue of one. */
export const makeDispatcher = (
  woken: Queue.Queue<true>,
  rows: Pick<OutboxRows, "claim">,
  attempt: (claimed: Claimed) => Effect.Effect<void, PortError>,
  log: Log,
): Dispatcher => {
  const places = Semaphore.makeUnsafe(maxAtOnce)
  const onTheWay = new Set<Fiber.Fiber<void>>()
  let pauseMs = shortestMs

  const deliver = (claimed: Claimed) =>
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
      Effect.ensuring(places.release(1)),
    )
  const start = (claimed: Claimed) =>
    Effect.map(Effect.forkDetach(deliver(claimed), { startImmediately: true }), (fiber) => {
      onTheWay.add(fiber)
      fiber.addObserver(() => onTheWay.delete(fiber))
    })
  const pause = Effect.suspend(() =>
    Effect.map(Effect.timeoutOption(Queue.take(woken), pauseMs), (wake) => {
      pauseMs = wake._tag === "Some" ? shortestMs : Math.min(longestMs, pauseMs * 2)
    }),
  )
  /** One mail, or a pause when there is none. What was claimed is always started: else it would wait for its lease to end. */
  const turn = Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      yield* restore(places.take(1))
      const claimed = yield* rows.claim.pipe(Effect.onError(() => places.release(1)))
      if (claimed) return yield* start(claimed)
      yield* places.release(1)
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
  const drain = places
    .take(maxAtOnce)
    .pipe(
      Effect.timeoutOption(stopWithin),
      Effect.andThen(
        Effect.suspend(() => Effect.forEach([...onTheWay], (fiber) => Fiber.interrupt(fiber))),
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
