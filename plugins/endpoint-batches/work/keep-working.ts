import { Cause, Deferred, Effect, Fiber, type Scope, Semaphore } from "effect"
import type { PortError } from "../../../core/index.ts"
import type { BatchHouse } from "../house.ts"
import { chooseBatches, whoYields } from "./choose.ts"
import { claimBatch, waitingBatches } from "./claim.ts"
import { makeGate } from "./gate.ts"
import { makeStop, type Stop } from "./stop.ts"
import { keepSwept } from "./sweeper.ts"
import { workOn } from "./work-on.ts"

interface Running {
  readonly tenant: string
  readonly stop: Stop
  fiber: Fiber.Fiber<void> | undefined
}

/** So many of one tenant, as part of all places. */
const tenantShare = 4

/** The batches in work in this process. */
const makeDesk = (house: BatchHouse) => {
  const { limits, log } = house
  const gate = makeGate(limits.linesAtOnce, limits.memoryBytes)
  const onePart = Semaphore.makeUnsafe(1).withPermits(1)
  const running = new Map<string, Running>()
  const ofOneTenant = Math.max(1, Math.ceil(limits.batchesAtOnce / tenantShare))
  let changed = Deferred.makeUnsafe<void>()

  const counts = (): ReadonlyMap<string, number> => {
    const byTenant = new Map<string, number>()
    for (const { tenant } of running.values()) byTenant.set(tenant, (byTenant.get(tenant) ?? 0) + 1)
    return byTenant
  }

  const start = (id: string, tenant: string): Effect.Effect<void, PortError> =>
    Effect.gen(function* () {
      const row = yield* claimBatch(house, id)
      if (!row) return
      const stop = makeStop()
      const one: Running = { tenant, stop, fiber: undefined }
      running.set(id, one)
      const ended = Effect.sync(() => {
        running.delete(id)
        Deferred.doneUnsafe(changed, Effect.void)
      })
      const work = workOn({ house, gate, onePart, stop, row }).pipe(
        Effect.catchCause((cause) =>
          Effect.sync(() => {
            if (!Cause.hasInterruptsOnly(cause)) log.warn("work on a batch broke off; it goes on when its lease is over", { batch: id, cause: Cause.pretty(cause) })
          }),
        ),
        Effect.ensuring(ended),
      )
      one.fiber = yield* Effect.forkDetach(work, { startImmediately: true })
    })

  /** The newest of a tenant that has many goes on later, where another has none. */
  const makeRoom = (tenant: string | undefined) =>
    Effect.sync(() => {
      if (tenant !== undefined)
        [...running.values()]
          .filter((one) => one.tenant === tenant && !one.stop.reason)
          .at(-1)
          ?.stop.tell("yielded")
    })

  const look = Effect.gen(function* () {
    const free = limits.batchesAtOnce - running.size
    const waiting = yield* waitingBatches(house, ofOneTenant)
    for (const { id, tenant } of chooseBatches(waiting, { running: counts(), free, ofOneTenant })) yield* start(id, tenant)
    if (free === 0) yield* makeRoom(whoYields(waiting, counts()))
  })

  return {
    look: Effect.uninterruptible(look),
    /** Until a batch has ended here, at most so long. */
    rest: (ms: number) =>
      Effect.map(
        Effect.timeoutOption(
          Effect.suspend(() => Deferred.await(changed)),
          ms,
        ),
        () => {
          changed = Deferred.makeUnsafe<void>()
        },
      ),
    /** In order: what has ended is committed, and another process may go on at once. */
    stop: Effect.suspend(() => Fiber.interruptAll([...running.values()].flatMap(({ fiber }) => fiber ?? []))),
  }
}

/** Works batches through until its Scope closes. Several processes may do so on one database. */
export const keepWorking = (house: BatchHouse): Effect.Effect<never, never, Scope.Scope> =>
  Effect.gen(function* () {
    const desk = makeDesk(house)
    yield* Effect.forkScoped(keepSwept(house))
    const careful = Effect.catchCause(desk.look, (cause) =>
      Cause.hasInterruptsOnly(cause) ? Effect.interrupt : Effect.sync(() => house.log.warn("could not look for batches", { cause: Cause.pretty(cause) })),
    )
    return yield* desk.rest(house.limits.pollMs).pipe(Effect.andThen(careful), Effect.forever, Effect.ensuring(desk.stop))
  })
