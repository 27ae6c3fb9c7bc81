import { Deferred, Effect, type Scope } from "effect"
import { type ApiError, apiError } from "../../../core/errors.ts"
import type { EngineChannel } from "../../../core/ports/execution-provider.ts"
import type { EngineSpec, FromThread, ThreadStats, ToThread } from "./protocol.ts"
import type { StartEngine } from "./start-thread.ts"

const closeTimeout = "30 seconds"

/** A running thread, or an engine in a device's process, whose model is open. */
export interface ThreadLink<Job, Info> {
  readonly info: Info
  post(message: ToThread<Job>): void
  /** Waits until the thread ends; succeeds with the reason. */
  readonly ended: Effect.Effect<string>
}

export interface ThreadListener<Event, Info> {
  progress(detail: string): void
  stats(stats: ThreadStats): void
  message(message: Extract<FromThread<Event, Info>, { readonly id: number }>): void
}

/**
 * Starts a thread and waits until its model is open; fails with `backend_error` and a message for
 * the operator.
 * When the scope closes, the thread finishes its step and frees the model. It is never terminated:
 * during a call into ONNX Runtime that would abort the process.
 */
export const linkThread = <Job, Event, Info>(
  spec: EngineSpec,
  listener: ThreadListener<Event, Info>,
  startEngine: StartEngine,
): Effect.Effect<ThreadLink<Job, Info>, ApiError, Scope.Scope> =>
  Effect.gen(function* () {
    const opened = Deferred.makeUnsafe<Info, ApiError>()
    const ended = Deferred.makeUnsafe<string>()
    const fail = (reason: string) =>
      Deferred.doneUnsafe(opened, Effect.fail(apiError("backend_error", reason)))
    const start = () => {
      const worker = startEngine(spec)
      let reason = ""
      const receive = (message: FromThread<Event, Info>) => {
        if (message.type === "progress") listener.progress(message.detail)
        else if (message.type === "stats") listener.stats(message.stats)
        else if (message.type === "unusable") fail(message.message)
        else if (message.type === "ready") Deferred.doneUnsafe(opened, Effect.succeed(message.info))
        else listener.message(message)
      }
      worker.on("message", (messages: readonly FromThread<Event, Info>[]) =>
        messages.forEach(receive),
      )
      worker.on("error", (cause) => {
        reason = cause instanceof Error ? cause.message : String(cause)
      })
      worker.on("exit", (code) => {
        fail(
          `${spec.path}: the engine's thread ended while it opened the model (${reason || `code ${code}`})`,
        )
        Deferred.doneUnsafe(ended, Effect.succeed(reason || `code ${code}`))
      })
      return worker
    }
    const close = (worker: EngineChannel) =>
      Effect.sync(() => worker.postMessage({ type: "close" } satisfies ToThread<Job>)).pipe(
        Effect.andThen(Deferred.await(ended)),
        Effect.timeoutOption(closeTimeout),
      )
    const worker = yield* Effect.acquireRelease(Effect.sync(start), close)
    const info = yield* Deferred.await(opened)
    return { info, post: (message) => worker.postMessage(message), ended: Deferred.await(ended) }
  })
