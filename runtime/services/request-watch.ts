import { Cause, Channel, Effect, Exit, Pull, Scope, Stream } from "effect"
import type { ApiError } from "../../core/errors.ts"
import type { ModelContext, Task } from "../../core/ports/model.ts"
import type { Clock } from "../../core/services/clock.ts"
import type { ModelId } from "../../core/services/ids.ts"
import { noUsage, type Usage } from "../../core/usage.ts"

export type RequestState = "waiting" | "running"

/** A request of a model that has ended; times in ms of the monotonic clock. */
export interface EndedRequest {
  /**
   * One for each answer: `stop`, `length`, `tool_calls` or `content_filter`; for a request without
   * any `abort` when it was interrupted, `error` when it failed.
   */
  readonly reasons: readonly string[]
  readonly usage: Usage
  readonly arrivedMs: number
  /** When it began to wait for the engine; it may have been tokenized and admitted before. */
  readonly startedMs: number
  /** When it left the queue; undefined if it never did. */
  readonly scheduledMs: number | undefined
  readonly firstTokenMs: number | undefined
  readonly lastTokenMs: number
  readonly endedMs: number
}

/** Receives what happens to the requests of one model. */
export interface RequestListener {
  /** Undefined: before its beginning, after its end. */
  moved(from: RequestState | undefined, to: RequestState | undefined): void
  ended(request: EndedRequest): void
}

/**
 * Watches a request from outside of the model, whatever its backend is. States: planned -> waiting
 * -> running -> ended. It runs from the first sign of work on: its time in the queue, usage, or an
 * event.
 */
export class RequestWatch {
  usage = noUsage
  private state: RequestState | undefined
  private readonly reasons: string[] = []
  private reason = "abort"
  private readonly arrivedMs: number
  private startedMs = 0
  private scheduledMs: number | undefined
  private firstTokenMs: number | undefined
  private lastTokenMs = 0
  private readonly clock: Clock
  private readonly listener: RequestListener
  private readonly context: ModelContext

  constructor(clock: Clock, listener: RequestListener, context: ModelContext) {
    this.clock = clock
    this.listener = listener
    this.context = context
    this.arrivedMs = clock.monotonicMs()
  }

  /** The context of the request, which hears everything first. */
  readonly watched = (): ModelContext =>
    Object.assign({}, this.context, {
      meter: (model: ModelId, soFar: Usage) => {
        this.context.meter(model, soFar)
        this.works()
        if (soFar.outputTokens > this.usage.outputTokens) this.produced()
        this.usage = soFar
      },
      time: (stage: string, durationMs: number) => {
        this.context.time(stage, durationMs)
        if (stage === "queue") this.works()
      },
    })

  private moveTo(state: RequestState | undefined): void {
    this.listener.moved(this.state, state)
    this.state = state
  }

  private works(): void {
    if (this.state !== "waiting") return
    this.scheduledMs = this.clock.monotonicMs()
    this.moveTo("running")
  }

  private produced(): void {
    this.lastTokenMs = this.clock.monotonicMs()
    this.firstTokenMs ??= this.lastTokenMs
  }

  private heard(events: readonly unknown[]): void {
    this.works()
    for (const event of events) {
      const { type, reason } = event as { readonly type?: string; readonly reason?: string }
      if (type === "finish" && reason !== undefined) this.reasons.push(reason)
      else if (this.firstTokenMs === undefined) this.produced()
    }
  }

  private begin(): void {
    this.startedMs = this.clock.monotonicMs()
    this.moveTo("waiting")
  }

  private end(reason: string): void {
    this.moveTo(undefined)
    const { reasons, usage, arrivedMs, startedMs, scheduledMs, firstTokenMs, lastTokenMs } = this
    this.listener.ended({
      reasons: reasons.length > 0 ? reasons : [reason],
      usage,
      arrivedMs,
      startedMs,
      scheduledMs,
      firstTokenMs,
      lastTokenMs,
      endedMs: this.clock.monotonicMs(),
    })
  }

  /** Notes how the stream ended, as a pull of it says. */
  private pulled<Event>(
    exit: Exit.Exit<readonly Event[], ApiError | Cause.Done>,
    whole: string,
  ): void {
    if (Exit.isSuccess(exit)) this.heard(exit.value)
    else if (Pull.isDoneCause(exit.cause)) this.reason = whole
    else if (!Cause.hasInterruptsOnly(exit.cause)) this.reason = "error"
  }

  /**
   * `whole`: the reason of a stream that ends without saying one, as those of embeddings do. One
   * layer around the stream, as it is there for every request.
   */
  observe<Event>(
    run: Stream.Stream<Event, ApiError>,
    whole: string,
  ): Stream.Stream<Event, ApiError> {
    const channel = Stream.toChannel(run)
    return Stream.fromChannel(
      Channel.fromTransform((_: unknown, scope) => {
        this.begin()
        const end = () => {
          this.end(this.reason)
          return Effect.void
        }
        return Effect.map(
          Effect.andThen(Scope.addFinalizerExit(scope, end), Channel.toPullScoped(channel, scope)),
          (pull) =>
            Effect.onExitPrimitive(pull, (exit) => {
              this.pulled(exit, whole)
              return undefined
            }),
        )
      }),
    )
  }
}

/** The same task, with each of its requests watched. */
export const watchTask = <Request, Event>(
  task: Task<Request, Event>,
  whole: string,
  watch: (context: ModelContext) => RequestWatch,
): Task<Request, Event> => ({
  plan: (request, context) => {
    const watching = watch(context)
    return Effect.mapEager(task.plan(request, watching.watched()), ({ bound, run }) => ({
      bound,
      run: watching.observe(run, whole),
    }))
  },
})
