import { Cause, Clock, Effect, Exit, Queue, Scope, Stream } from "effect"
import { type ApiError, apiError } from "../../../core/errors.ts"
import type { EngineStats } from "../../../core/ports/model.ts"
import type { Log } from "../../../core/services/log.ts"
import { linkThread, type ThreadLink } from "./link.ts"
import { PendingRequests, retryAfterMs } from "./pending-requests.ts"
import type { EngineSpec, Priority, StageTime } from "./protocol.ts"
import { type StartEngine, startThread } from "./start-thread.ts"
import { makeEngineStats } from "./stats.ts"

export interface RunOptions<Event, Out> {
  /** Requests are scheduled fairly by account. */
  readonly account: string
  readonly priority: Priority
  /** Longest wait for a slot before `backend_busy`; batch work waits until its deadline. */
  readonly waitMs: number
  /** Called when the stream begins; after this time it fails with `backend_timeout`. */
  timeoutMs(): number
  /** Called once for each event when it arrives; what it returns goes into the stream. */
  translate(event: Event | StageTime): readonly Out[] | undefined
}

type Wait = Pick<RunOptions<never, never>, "priority" | "waitMs">

/** A model in a worker thread, as the main thread sees it. */
export interface Engine<Job, Event, Info> {
  readonly info: Info
  /**
   * Whether batch lines are accepted. Fails with `backend_busy` when batch work holds as many
   * requests as there are slots and places in the queue, with `model_loading` while the thread is
   * being restarted.
   */
  readonly available: Effect.Effect<void, ApiError>
  /**
   * As `available`, counted for each priority by itself; a request that must not wait also fails
   * when other real-time requests hold all slots.
   */
  availableFor(request: Wait): Effect.Effect<void, ApiError>
  /** Runs a job. Interrupting the stream cancels it within one step. */
  run<Out>(job: Job, options: RunOptions<Event, Out>): Stream.Stream<Out, ApiError>
  stats(): EngineStats
  /** Where it runs now: `onnx cpu`, `webgpu (NAME)` or `webgpu, now cpu`. */
  servedBy(): string
}

/** Where the threads or processes of an engine are started. */
export interface Placement {
  readonly start: StartEngine
  servedBy(): string
}

export const onCpu: Placement = { start: startThread, servedBy: () => "onnx cpu" }

export interface HostOptions {
  readonly spec: EngineSpec
  /** The maximum number of requests that wait for a slot, for each priority. */
  readonly queue: number
  readonly log: Log
  /** By default on the CPU. */
  readonly placement?: Placement
  progress(detail: string): void
}

/** Delays before each restart of a thread that died; after the last one the model is given up. */
const restartDelaysMs = [500, 1_000, 2_000, 5_000, 10_000]
/** After so many completed requests, or so long, a thread is stable, and restarts count from zero. */
const soundAfter = 100
const soundMs = 10 * 60_000

/** States: open -> (thread dies) -> restarting -> open | given up; any -> closed (scope). */
class EngineHost<Job, Event, Info> implements Engine<Job, Event, Info> {
  private readonly options: HostOptions
  private readonly pending: PendingRequests<Event>
  private link: ThreadLink<Job, Info> | undefined
  private givenUp = false
  private known: Info | undefined
  private readonly engineStats = makeEngineStats()
  readonly stats = this.engineStats.read
  readonly servedBy: () => string
  readonly available: Effect.Effect<void, ApiError>

  constructor(options: HostOptions) {
    this.options = options
    this.pending = new PendingRequests(options.log, options.spec.path)
    this.servedBy = (options.placement ?? onCpu).servedBy
    this.available = this.availableFor({ priority: "batch", waitMs: 0 })
  }

  readonly availableFor: Engine<Job, Event, Info>["availableFor"] = (request) =>
    Effect.suspend(() => {
      const refusal = this.refusal(request.priority) ?? this.noSlot(request)
      return refusal ? Effect.fail(refusal) : Effect.void
    })

  /** Refuses early when no slot is free; the thread decides exactly, by memory too. */
  private noSlot({ priority, waitMs }: Wait): ApiError | undefined {
    const { slots } = this.options.spec
    if (priority === "batch" || waitMs > 0) return undefined
    return this.pending.count(priority) < slots
      ? undefined
      : apiError("backend_busy", `All ${slots} slots of the model are taken.`, { retryAfterMs })
  }

  get info(): Info {
    return this.known!
  }

  /**
   * Returns why a request is refused, if it is. Priorities are counted apart, so batch lines take
   * no place in the queue from real-time requests.
   */
  private refusal(priority: Priority): ApiError | undefined {
    const { spec, queue } = this.options
    if (this.givenUp)
      return apiError(
        "backend_error",
        "The model's engine has stopped; the operator finds the reason in the log.",
      )
    if (!this.link)
      return apiError(
        "model_loading",
        "The model's engine is being restarted. Try again shortly.",
        { retryAfterMs: 5_000 },
      )
    if (this.pending.count(priority) >= spec.slots + queue)
      return apiError(
        "backend_busy",
        `All ${spec.slots} slots of the model and its queue of ${queue} are taken.`,
        { retryAfterMs },
      )
    return undefined
  }

  run<Out>(
    job: Job,
    { account, priority, waitMs, timeoutMs, translate }: RunOptions<Event, Out>,
  ): Stream.Stream<Out, ApiError> {
    return Stream.callback<Out, ApiError>((out) =>
      Effect.gen({ self: this }, function* () {
        yield* this.availableFor({ priority, waitMs })
        const link = this.link!
        const failed = (error: ApiError) => void Queue.failCauseUnsafe(out, Cause.fail(error))
        const event = (event: Event | StageTime) => {
          for (const translated of translate(event) ?? []) Queue.offerUnsafe(out, translated)
        }
        const done = () => void Queue.endUnsafe(out)
        const id = this.pending.add({ priority, event, failed, done })
        yield* Effect.addFinalizer(() =>
          Effect.sync(() => {
            if (this.pending.remove(id)) link.post({ type: "cancel", id })
          }),
        )
        link.post({
          type: "submit",
          id,
          account,
          priority,
          waitMs: priority === "batch" ? Number.POSITIVE_INFINITY : waitMs,
          job,
        })
        const tooSlow = Effect.sync(() => failed(apiError("backend_timeout")))
        yield* Effect.sleep(Math.max(0, timeoutMs())).pipe(
          Effect.andThen(tooSlow),
          Effect.forkScoped,
        )
      }),
    )
  }

  /** Starts a thread in its own scope: a dead one is cleaned up before the next starts. */
  readonly open = (scope: Scope.Scope): Effect.Effect<ThreadLink<Job, Info>, ApiError> =>
    linkThread<Job, Event, Info>(
      this.options.spec,
      { ...this.options, stats: this.engineStats.update, message: this.pending.receive },
      (this.options.placement ?? onCpu).start,
    ).pipe(
      Scope.provide(scope),
      Effect.tap((link) =>
        Effect.sync(() => {
          this.link = link
          this.known = link.info
        }),
      ),
    )

  private lose(reason: string): void {
    this.link = undefined
    this.engineStats.lose()
    this.options.log.error("engine.thread_ended", "an engine's thread ended", {
      model: this.options.spec.path,
      reason,
      requestsLost: this.pending.failAll(),
    })
  }

  readonly close = Effect.sync(() => {
    this.givenUp = true
    this.pending.failAll()
  })

  private readonly reopen = Effect.gen({ self: this }, function* () {
    const scope = yield* Scope.make()
    yield* Effect.addFinalizer(() => Scope.close(scope, Exit.void))
    this.pending.restart()
    this.engineStats.restart()
    const opened = yield* Effect.exit(this.open(scope))
    this.options.log.warn("engine.thread_restarted", "an engine's thread was started again", {
      model: this.options.spec.path,
      open: Exit.isSuccess(opened),
    })
    if (Exit.isSuccess(opened)) return opened.value
    yield* Scope.close(scope, Exit.void)
    return undefined
  })

  /** Restarts the thread whenever it ends, until the restarts are used up. */
  readonly supervise = (first: ThreadLink<Job, Info>): Effect.Effect<void> =>
    Effect.gen({ self: this }, function* () {
      let link: ThreadLink<Job, Info> | undefined = first
      for (let tries = 0; ; tries++) {
        if (link) {
          const openedMs = yield* Clock.currentTimeMillis
          this.lose(yield* link.ended)
          const wasOpenMs = (yield* Clock.currentTimeMillis) - openedMs
          if (this.pending.completed >= soundAfter || wasOpenMs >= soundMs) tries = 0
        }
        const delayMs = restartDelaysMs[tries]
        if (delayMs === undefined) break
        yield* Effect.sleep(delayMs)
        link = yield* this.reopen
      }
      this.givenUp = true
      this.options.log.error(
        "engine.given_up",
        "an engine is given up, because its thread ended too often",
        { model: this.options.spec.path },
      )
    }).pipe(Effect.scoped)
}

/**
 * Starts the thread and opens the model; fails with `backend_error`, whose message names the file
 * and the reason.
 */
export const startEngine = <Job, Event, Info>(
  options: HostOptions,
): Effect.Effect<Engine<Job, Event, Info>, ApiError, Scope.Scope> =>
  Effect.gen(function* () {
    const host = new EngineHost<Job, Event, Info>(options)
    const scope = yield* Effect.scope
    yield* Effect.addFinalizer(() => host.close)
    const first = yield* host.open(scope)
    yield* Effect.forkScoped(host.supervise(first), { startImmediately: true })
    return host
  })
