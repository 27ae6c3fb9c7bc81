import { Effect } from "effect"
import { type ApiError, apiError, portFailure } from "../../../core/errors.ts"
import type { ModelContext } from "../../../core/ports/model.ts"
import type { Clock } from "../../../core/services/clock.ts"
import type { Log } from "../../../core/services/log.ts"
import type { Workers } from "../../../core/services/workers.ts"
import { siblingModule } from "../worker/sibling-module.ts"

/**
 * Runs a job in the thread pool, named by its path from here. Fails with `server_busy` when the
 * pool's queue is full; any other failure is logged and becomes `backend_error`.
 */
export const inPool = <Input, Output>(
  workers: Workers,
  log: Log,
  job: string,
  input: Input,
): Effect.Effect<Output, ApiError> =>
  workers.run<Input, Output>(siblingModule(import.meta.url, `./${job}`), input).pipe(
    Effect.catch((error) => {
      if (error.why === "busy") return Effect.fail(portFailure(error))
      log.error("tokenizer.job_failed", "a job of the pool failed", {
        job,
        reason: error.message,
        cause: error.cause,
      })
      return Effect.fail(apiError("backend_error"))
    }),
  )

/** Reports the duration of `work` as the stage `tokenize`. */
export const timedTokenize = <A, E>(
  clock: Clock,
  context: ModelContext,
  work: Effect.Effect<A, E>,
): Effect.Effect<A, E> =>
  Effect.suspend(() => {
    const startedMs = clock.nowMs()
    return Effect.onExit(work, () =>
      Effect.sync(() => context.time("tokenize", clock.nowMs() - startedMs)),
    )
  })
