import { Cause, Deferred, Effect, Fiber, Semaphore } from "effect"
import type { PortError, StorageError } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import { workOn } from "./batch-lifecycle.ts"
import { makeStop, type Stop } from "./cancellation.ts"
import { chooseBatches, whoYields } from "./choose.ts"
import { claimBatch, waitingBatches } from "./claim.ts"
import { makePurses } from "./hold-tracker.ts"
import { makeGate } from "./line-scheduler.ts"

interface Running {
  readonly tenant: string
  readonly stop: Stop
  fiber: Fiber.Fiber<void> | undefined
}

/** So many of one tenant, as part of all places. */
const tenantShare = 4

const countTenants = (running: Iterable<Running>): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>()
  for (const { tenant } of running) counts.set(tenant, (counts.get(tenant) ?? 0) + 1)
  return counts
}

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

export interface Desk {
  /** Takes on what may be taken on. */
  readonly look: Effect.Effect<void, PortError>
  /** Until a batch has ended here, at most so long. */
  rest(ms: number): Effect.Effect<void>
  /** In order: what has ended is committed, and another process may go on at once. */
  readonly stop: Effect.Effect<void>
}

/** The batches in work in this process. */
export const makeDesk = (deps: BatchDeps): Desk => {
  const { limits } = deps
  const gate = makeGate(limits.linesAtOnce, limits.memoryBytes)
  const onePart = Semaphore.makeUnsafe(1).withPermits(1)
  const purses = makePurses()
  const running = new Map<string, Running>()
  const ofOneTenant = Math.max(1, Math.ceil(limits.batchesAtOnce / tenantShare))
  let changed = Deferred.makeUnsafe<void>()

  const ended = (id: string) =>
    Effect.sync(() => {
      running.delete(id)
      Deferred.doneUnsafe(changed, Effect.void)
    })

  const start = (id: string, tenant: string): Effect.Effect<void, PortError> =>
    Effect.gen(function* () {
      const row = yield* claimBatch(deps, id)
      if (!row) return
      const one: Running = { tenant, stop: makeStop(), fiber: undefined }
      running.set(id, one)
      const work = logged(
        deps,
        id,
        purses.using(row.key_id, (purse) =>
          workOn({ deps, gate, onePart, purse, stop: one.stop, row }),
        ),
      )
      one.fiber = yield* Effect.forkDetach(Effect.ensuring(work, ended(id)), {
        startImmediately: true,
      })
    })

  /** The newest of a tenant that has many goes on later, where another has none. */
  const makeRoom = (tenant: string | undefined): void => {
    if (tenant !== undefined)
      [...running.values()]
        .filter((one) => one.tenant === tenant && !one.stop.reason)
        .at(-1)
        ?.stop.tell("yielded")
  }

  const look = Effect.gen(function* () {
    const free = limits.batchesAtOnce - running.size
    // one of ours whose lease was not renewed in time is not claimed again: it goes on, or ends
    const waiting = (yield* waitingBatches(deps, ofOneTenant)).filter(({ id }) => !running.has(id))
    const chosen = chooseBatches(waiting, {
      running: countTenants(running.values()),
      free,
      ofOneTenant,
    })
    for (const { id, tenant } of chosen) yield* start(id, tenant)
    if (free === 0) makeRoom(whoYields(waiting, countTenants(running.values())))
  })

  return {
    look: Effect.uninterruptible(look),
    rest: (ms) =>
      Effect.map(
        Effect.timeoutOption(
          Effect.suspend(() => Deferred.await(changed)),
          ms,
        ),
        () => {
          changed = Deferred.makeUnsafe<void>()
        },
      ),
    stop: Effect.suspend(() =>
      Fiber.interruptAll([...running.values()].flatMap(({ fiber }) => fiber ?? [])),
    ),
  }
}
