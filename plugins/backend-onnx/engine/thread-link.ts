import { Deferred, Effect, type Scope } from "effect"
import { type ApiError, apiError } from "../../../core/errors.ts"
import type { EngineSpec, FromThread, ToThread } from "./protocol.ts"
import { startThread } from "./start-thread.ts"

/** A thread whose model is open. */
export interface ThreadLink<Job, Info> {
  readonly info: Info
  post(message: ToThread<Job>): void
  /** Waits for its end and says why it ended. */
  readonly ended: Effect.Effect<string>
}

export interface ThreadListener<Event, Info> {
  progress(detail: string): void
  message(message: Extract<FromThread<Event, Info>, { readonly id: number }>): void
}

/**
 * Starts a thread and waits until its model is open; fails with `backend_error` and a message for the operator.
 * When the scope closes, the thread finishes its step and frees the model; one that is still loading, or does not answer, is ended.
 */
export const linkThread = <Job, Event, Info>(spec: EngineSpec, listener: ThreadListener<Event, Info>): Effect.Effect<ThreadLink<Job, Info>, ApiError, Scope.Scope> =>
  Effect.gen(function* () {
    const opened = Deferred.makeUnsafe<Info, ApiError>()
    const ended = Deferred.makeUnsafe<string>()
    let isOpen = false
    const fail = (reason: string) => Deferred.doneUnsafe(opened, Effect.fail(apiError("backend_error", reason)))
    const start = Effect.sync(() => {
      const worker = startThread(spec)
      let reason = ""
      worker.on("message", (message: FromThread<Event, Info>) => {
        if (message.type === "progress") listener.progress(message.detail)
        else if (message.type === "unusable") fail(message.message)
        else if (message.type === "ready") {
          isOpen = true
          Deferred.doneUnsafe(opened, Effect.succeed(message.info))
        } else listener.message(message)
      })
      worker.on("error", (cause) => {
        reason = cause instanceof Error ? cause.message : String(cause)
      })
      worker.on("exit", (code) => {
        fail(`${spec.path}: the engine's thread ended while it opened the model (${reason || `code ${code}`})`)
        Deferred.doneUnsafe(ended, Effect.succeed(reason || `code ${code}`))
      })
      return worker
    })
    const worker = yield* Effect.acquireRelease(start, (worker) => {
      const terminate = Effect.promise(() => worker.terminate()).pipe(Effect.asVoid)
      const ask = Effect.sync(() => worker.postMessage({ type: "close" } satisfies ToThread<Job>))
      const politely = ask.pipe(Effect.andThen(Deferred.await(ended)), Effect.timeoutOption("5 seconds"), Effect.andThen(terminate))
      return Effect.suspend(() => (isOpen ? politely : terminate))
    })
    const info = yield* Deferred.await(opened)
    return { info, post: (message) => worker.postMessage(message), ended: Deferred.await(ended) }
  })
