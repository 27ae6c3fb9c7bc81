import { Effect, Queue, type Scope } from "effect"
import type { Clock, Log, PortError } from "../../core/index.ts"
import type { Worker } from "./worker.ts"

const shortestMs = 10
const beatMs = 1_000

/** Logs when the work begins to fail, and when it works again. Returns `instead` while it fails. */
const loggingChanges = (what: string, log: Log) => {
  let isFailing = false
  return <A>(work: Effect.Effect<A, PortError>, instead: A): Effect.Effect<A> =>
    work.pipe(
      Effect.tap(() =>
        Effect.sync(() => {
          if (isFailing) log.info("queue.worker_recovered", `${what} works again`)
          isFailing = false
        }),
      ),
      Effect.catch((error) =>
        Effect.sync(() => {
          if (!isFailing)
            log.warn("queue.worker_failing", `${what} failed; it is tried again and again`, {
              error: error.message,
            })
          isFailing = true
          return instead
        }),
      ),
    )
}

/** Runs the worker's loops until the Scope closes. `woken`: a sliding queue of one. */
export const drive = (
  worker: Worker,
  woken: Queue.Queue<true>,
  { clock, log, pollMs }: { readonly clock: Clock; readonly log: Log; readonly pollMs: number },
) => {
  let pauseMs = shortestMs
  const fillLogged = loggingChanges("looking for work in the queue", log)
  const renewLogged = loggingChanges("renewing leases", log)
  // a job that was sent in a transaction becomes visible at its commit, a little later: pauses
  // start short and double
  const pause = (soonestMs: number) =>
    Effect.suspend(() =>
      Effect.timeoutOption(
        Queue.take(woken),
        Math.max(shortestMs, Math.min(pauseMs, soonestMs - clock.nowMs())),
      ),
    ).pipe(
      Effect.flatMap((wake) =>
        Effect.sync(() => {
          pauseMs = wake._tag === "Some" ? shortestMs : Math.min(pollMs, pauseMs * 2)
        }),
      ),
    )
  const poll = Effect.suspend(() => fillLogged(worker.fill, Number.POSITIVE_INFINITY)).pipe(
    Effect.flatMap(pause),
    Effect.forever,
  )
  const renew = Effect.suspend(() => renewLogged(worker.renew, undefined)).pipe(
    Effect.andThen(Effect.sleep(beatMs)),
    Effect.forever,
  )
  // a loop of its own, as a renewal may hang
  const dropLost = worker.dropLost.pipe(Effect.andThen(Effect.sleep(beatMs)), Effect.forever)
  return Effect.forEach(
    [poll, renew, dropLost],
    (loop): Effect.Effect<unknown, never, Scope.Scope> => Effect.forkScoped(loop),
    { discard: true },
  )
}
