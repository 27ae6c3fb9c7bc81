import { Effect } from "effect"
import { type ApiError, apiError, PortError, portFailure } from "../../../core/errors.ts"
import type { ModelContext } from "../../../core/ports/model.ts"
import type { Clock } from "../../../core/services/clock.ts"
import type { Log } from "../../../core/services/log.ts"
import type { Workers } from "../../../core/services/workers.ts"
import { siblingModule } from "../worker/sibling-module.ts"

// far longer than a bounded task takes in its thread
const taskLimitMs = 20_000
const withQueue = "40 seconds"

const failBusy = () => Effect.fail(apiError("server_busy"))

/**
 * Runs a task whose work is bounded by what it counts. Where it takes long none the less, in its
 * thread or waiting for one, the machine is overloaded: `server_busy`, never a verdict.
 */
export const limitedTask = <A>(
  run: (limitMs: number) => Effect.Effect<A, PortError>,
): Effect.Effect<A, ApiError | PortError> =>
  Effect.timeoutOrElse(
    Effect.catch(
      run(taskLimitMs),
      (error): Effect.Effect<never, ApiError | PortError> =>
        error.why === "slow" ? failBusy() : Effect.fail(error),
    ),
    { duration: withQueue, orElse: failBusy },
  )

const reported = <Output>(
  log: Log,
  job: string,
  work: Effect.Effect<Output, ApiError | PortError>,
): Effect.Effect<Output, ApiError> =>
  Effect.catchTag(work, "PortError", (error) => {
    if (error.why === "busy") return Effect.fail(portFailure(error))
    log.error("tokenizer.job_failed", "a job of the pool failed", {
      job,
      reason: error.message,
      cause: error.cause,
    })
    return Effect.fail(apiError("backend_error"))
  })

/**
 * Runs a job in the thread pool, named by its path from here. Fails with `server_busy` when the
 * pool's queue is full, or a limited job takes too long; any other failure is logged and becomes
 * `backend_error`.
 */
export const inPool = <Input, Output>(
  workers: Workers,
  log: Log,
  job: string,
  input: Input,
  { isLimited = false } = {},
): Effect.Effect<Output, ApiError> => {
  const run = (limitMs?: number) =>
    workers.run<Input, Output>(siblingModule(import.meta.url, `./${job}`), input, limitMs)
  return reported(log, job, isLimited ? limitedTask(run) : run())
}

/** Runs a job in this thread: it must take less time here than the hop to another. */
export const inThisThread = <Output>(
  log: Log,
  job: string,
  run: () => Promise<Output>,
): Effect.Effect<Output, ApiError> =>
  reported(
    log,
    job,
    Effect.tryPromise({
      try: run,
      catch: (cause) => new PortError({ port: "workers", message: String(cause), cause }),
    }),
  )

/** Reports the duration of `work` as a stage. */
export const timed = <A, E>(
  clock: Clock,
  context: ModelContext,
  stage: "tokenize" | "images" | "png" | "audio",
  work: Effect.Effect<A, E>,
): Effect.Effect<A, E> =>
  Effect.suspend(() => {
    const startedMs = clock.nowMs()
    return Effect.onExit(work, () =>
      Effect.sync(() => context.time(stage, clock.nowMs() - startedMs)),
    )
  })

export const timedTokenize = <A, E>(
  clock: Clock,
  context: ModelContext,
  work: Effect.Effect<A, E>,
): Effect.Effect<A, E> => timed(clock, context, "tokenize", work)
