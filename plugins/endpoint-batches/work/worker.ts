import { Cause, Deferred, Effect, Fiber, type Scope, Semaphore } from "effect"
import type { PortError, StorageError } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import { runClaimed } from "./batch-lifecycle.ts"
import { lineCounter } from "./batch-metrics.ts"
import { type Cancellation, makeCancellation } from "./cancellation.ts"
import { chooseBatches, claimBatch, waitingBatches, whoYields } from "./claim.ts"
import { makeHoldTrackers } from "./hold-tracker.ts"
import { makeLineScheduler } from "./line-scheduler.ts"
import type { ClaimedBatch } from "./run-batch.ts"
import { keepSwept } from "./sweep.ts"

interface RunningBatch {
  readonly tenant: string
  readonly cancellation: Cancellation
  fiber: Fiber.Fiber<void> | undefined
}

/** One tenant has at most this part of all slots. */
const tenantShare = 4

/**
 * Logs what a batch failed with: another worker, or this one, goes on when the lease has run out.
 */
const logged = (
  { log }: BatchDeps,
  batch: string,
  work: Effect.Effect<void, StorageError>,
): Effect.Effect<void> =>
  Effect.catchCause(work, (cause) =>
    Effect.sync(() => {
      if (!Cause.hasInterruptsOnly(cause))
        log.warn(
          "batch.work_interrupted",
          "work on a batch broke off; it goes on when its lease is over",
          {
            batch,
            cause: Cause.pretty(cause),
          },
        )
    }),
  )

/** The batches that run in this process. */
const makeRunning = () => {
  const running = new Map<string, RunningBatch>()
  let changed = Deferred.makeUnsafe<void>()
  return {
    has: (id: string): boolean => running.has(id),
    get count(): number {
      return running.size
    },
    byTenant: (): ReadonlyMap<string, number> => {
      const counts = new Map<string, number>()
      for (const { tenant } of running.values()) counts.set(tenant, (counts.get(tenant) ?? 0) + 1)
      return counts
    },
    add: (id: string, batch: RunningBatch): void => void running.set(id, batch),
    remove: (id: string): void => {
      running.delete(id)
      Deferred.doneUnsafe(changed, Effect.void)
    },
    /** Cancels the newest batch of a tenant; it goes on later. */
    yieldNewest: (tenant: string): void =>
      [...running.values()]
        .filter((one) => one.tenant === tenant && !one.cancellation.reason)
        .at(-1)
        ?.cancellation.cancel("yielded"),
    /** Sleeps until a batch has ended, at most for `ms`. */
    endWithin: (ms: number): Effect.Effect<void> =>
      Effect.map(
        Effect.timeoutOption(
          Effect.suspend(() => Deferred.await(changed)),
          ms,
        ),
        () => {
          changed = Deferred.makeUnsafe<void>()
        },
      ),
    interruptAll: Effect.suspend(() =>
      Fiber.interruptAll([...running.values()].flatMap(({ fiber }) => fiber ?? [])),
    ),
  }
}

export interface BatchWorker {
  /** Claims and starts the batches that there are slots for. */
  readonly poll: Effect.Effect<void, PortError>
  /** Sleeps until a batch has ended here, at most for `ms`. */
  rest(ms: number): Effect.Effect<void>
  /**
   * Interrupts all batches: lines that have ended are committed, and another process may go on at
   * once.
   */
  readonly stop: Effect.Effect<void>
}

const makeBatchWorker = (deps: BatchDeps): BatchWorker => {
  const { limits } = deps
  const shared = {
    deps,
    scheduler: makeLineScheduler(limits.linesAtOnce, limits.memoryBytes),
    oneSegment: Semaphore.makeUnsafe(1).withPermits(1),
  } satisfies Partial<ClaimedBatch>
  const trackers = makeHoldTrackers()
  const running = makeRunning()
  const perTenant = Math.max(1, Math.ceil(limits.batchesAtOnce / tenantShare))

  const start = (id: string, tenant: string): Effect.Effect<void, PortError> =>
    Effect.gen(function* () {
      const row = yield* claimBatch(deps, id)
      if (!row) return
      const batch: RunningBatch = { tenant, cancellation: makeCancellation(), fiber: undefined }
      running.add(id, batch)
      const { cancellation } = batch
      const work = trackers.using(row.key_id, (holds) =>
        runClaimed({ ...shared, holds, cancellation, row }),
      )
      const remove = Effect.sync(() => running.remove(id))
      batch.fiber = yield* Effect.forkDetach(Effect.ensuring(logged(deps, id, work), remove), {
        startImmediately: true,
      })
    })

  const poll = Effect.gen(function* () {
    const free = limits.batchesAtOnce - running.count
    // a batch of ours whose lease was renewed too late is not claimed again: it goes on, or ends
    const waiting = (yield* waitingBatches(deps, perTenant)).filter(({ id }) => !running.has(id))
    const slots = { running: running.byTenant(), free, perTenant }
    for (const { id, tenant } of chooseBatches(waiting, slots)) yield* start(id, tenant)
    const yielding = free === 0 ? whoYields(waiting, running.byTenant()) : undefined
    if (yielding !== undefined) running.yieldNewest(yielding)
  })

  return { poll: Effect.uninterruptible(poll), rest: running.endWithin, stop: running.interruptAll }
}

/** Works batches through until its Scope closes. Several processes may do so on one database. */
export const keepWorking = (deps: BatchDeps): Effect.Effect<never, never, Scope.Scope> =>
  Effect.gen(function* () {
    const worker = makeBatchWorker(deps)
    yield* keepSwept(deps)
    lineCounter(deps)
    const poll = Effect.catchCause(worker.poll, (cause) =>
      Cause.hasInterruptsOnly(cause)
        ? Effect.interrupt
        : Effect.sync(() =>
            deps.log.warn("batch.poll_failed", "could not look for batches", {
              cause: Cause.pretty(cause),
            }),
          ),
    )
    return yield* worker
      .rest(deps.limits.pollMs)
      .pipe(Effect.andThen(poll), Effect.forever, Effect.ensuring(worker.stop))
  })
