import { Effect, Fiber, Queue } from "effect"
import {
  type Arbitrary,
  array,
  assert,
  asyncProperty,
  constantFrom,
  integer,
  record,
} from "fast-check"
import { expect, it } from "vitest"
import { type ApiError, apiError } from "../../../core/index.ts"
import { makeCommitBuffer } from "./commit-buffer.ts"
import { makeHoldTracker } from "./hold-tracker.ts"
import { type AnsweredLine, type LineResources, startLine } from "./line-run.ts"
import { makeLineScheduler } from "./line-scheduler.ts"
import type { LineAccess, LineResult } from "./run-line.ts"

const slots = 3
const memory = 30_000
/** What the scheduler adds to each line. */
const overhead = 1_024

/** The real parts, with a count of what the lines take and give back. */
const openResources = () => {
  const scheduler = makeLineScheduler(slots, memory)
  const holds = makeHoldTracker()
  const buffer = makeCommitBuffer<AnsweredLine>({
    maxItems: 4,
    maxBytes: 1e9,
    lingerMs: 3_600_000,
    bytesOf: ({ result }) => result.body.length,
  })
  const counts = { permits: 0, freedPermits: 0, holds: 0, freedHolds: 0, expected: 0, arrived: 0 }
  const counting =
    <A extends readonly unknown[], B>(name: keyof typeof counts, act: (...args: A) => B) =>
    (...args: A): B => {
      counts[name] += 1
      return act(...args)
    }
  const resources: LineResources = {
    scheduler: {
      acquire: (tenant, bytes) =>
        Effect.map(scheduler.acquire(tenant, bytes), (permit) => {
          counts.permits += 1
          return { ...permit, release: counting("freedPermits", permit.release) }
        }),
    },
    holds: {
      open: counting("holds", () => {
        const hold = holds.open()
        return { ...hold, release: counting("freedHolds", hold.release) }
      }),
      get isAwaited() {
        return holds.isAwaited
      },
    },
    buffer: {
      ...buffer,
      expect: counting("expected", buffer.expect),
      put: counting("arrived", buffer.put),
      abandon: counting("arrived", buffer.abandon),
    },
    fibers: new Set(),
  }
  return { resources, scheduler, holds, buffer, counts }
}
type Opened = ReturnType<typeof openResources>

const events = ["answer", "call", "fail", "refuse", "rest", "wake", "cancel", "defect"] as const
type Event = (typeof events)[number]

/**
 * A line that does what the test says: calls are admitted, refused or fail; it rests, and ends in
 * one of five ways.
 */
const makeLine = (line: number) => {
  const queue = Effect.runSync(Queue.unbounded<Event>())
  const result = (ok: boolean): LineResult => ({ line, ok, body: "x".repeat(100) })
  const run = (access: LineAccess): Effect.Effect<LineResult | undefined> => {
    const attempt = (call: Effect.Effect<unknown, ApiError>) => Effect.ignore(access.attempt(call))
    const step: Effect.Effect<LineResult | undefined> = Effect.flatMap(
      Queue.take(queue),
      (event) => {
        switch (event) {
          case "answer":
            return Effect.as(attempt(Effect.void), result(true))
          case "call":
            return Effect.as(attempt(Queue.take(queue)), result(true))
          case "fail":
            return Effect.as(attempt(Effect.fail(apiError("model_not_found"))), result(false))
          case "refuse":
            return attempt(Effect.fail(apiError("insufficient_quota"))).pipe(
              Effect.andThen(access.resting(access.moneyFreed)),
              Effect.andThen(step),
            )
          case "rest":
            return attempt(Effect.fail(apiError("backend_busy"))).pipe(
              Effect.andThen(access.resting(Queue.take(queue))),
              Effect.andThen(step),
            )
          case "wake":
            return step
          case "cancel":
            return Effect.succeed(undefined)
          case "defect":
            return Effect.andThen(attempt(Effect.void), Effect.die("a defect"))
        }
      },
    )
    return step
  }
  return { run, send: (event: Event) => void Queue.offerUnsafe(queue, event) }
}

/** Long enough for fibers to notice what happened. */
const settled = async () => {
  for (let turn = 0; turn < 4; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
}

const release = (lines: readonly AnsweredLine[], times = 1) => {
  for (const line of lines) for (let n = 0; n < times; n++) line.release()
}

interface Move {
  readonly act: "start" | "event" | "interrupt" | "give up" | "commit" | "commit twice" | "drain"
  readonly event: Event
  readonly tenant: string
  readonly bytes: number
  readonly pick: number
}
const move: Arbitrary<Move> = record({
  act: constantFrom<Move["act"]>(
    ...(["start", "start", "event", "event", "event", "event", "interrupt", "give up"] as const),
    ...(["commit", "commit twice", "drain"] as const),
  ),
  event: constantFrom(...events),
  tenant: constantFrom("a", "b"),
  bytes: integer({ min: 0, max: 8_000 }),
  pick: integer({ min: 0, max: 100 }),
})

const playAll = async ({ resources, buffer }: Opened, moves: readonly Move[]) => {
  const lines: ReturnType<typeof makeLine>[] = []
  const starts: Fiber.Fiber<void>[] = []
  const one = <A>(all: readonly A[], pick: number) => all[pick % Math.max(1, all.length)]
  const acts: Readonly<Record<Move["act"], (move: Move) => void>> = {
    start: ({ tenant, bytes }) => {
      const line = makeLine(lines.length)
      lines.push(line)
      starts.push(Effect.runFork(startLine(resources, { tenant, bytes }, line.run)))
    },
    event: ({ event, pick }) => one(lines, pick)?.send(event),
    interrupt: ({ pick }) => one([...resources.fibers], pick)?.interruptUnsafe(),
    "give up": ({ pick }) => one(starts, pick)?.interruptUnsafe(),
    commit: () => release(buffer.take().items),
    "commit twice": () => release(buffer.take().items, 2),
    drain: () => release(buffer.drain()),
  }
  for (const next of moves) {
    acts[next.act](next)
    // sometimes several things happen at once
    if (next.pick % 3 > 0) await settled()
  }
  return starts
}

/** All slots and all memory are free, and no more than that. */
const expectFree = async (scheduler: Opened["scheduler"]) => {
  const admitted: boolean[] = []
  const enter = (bytes: number) => {
    const at = admitted.push(false) - 1
    return Effect.runFork(
      Effect.map(scheduler.acquire("probe", bytes), (permit) => {
        admitted[at] = true
        return permit
      }),
    )
  }
  const probes = Array.from({ length: slots }, () => enter(memory / slots - overhead))
  await settled()
  expect(admitted).toEqual(probes.map(() => true))
  for (const probe of probes) (await Effect.runPromise(Fiber.join(probe))).release()
  const all = enter(memory - overhead)
  const more = enter(0)
  await settled()
  expect(admitted.slice(slots)).toEqual([true, false])
  await Effect.runPromise(Fiber.interruptAll([all, more]))
}

it("gives permit, hold and buffer entry back exactly once, however lines end and whatever comes between", async () => {
  const seen = new Set<string>()
  await assert(
    asyncProperty(array(move, { maxLength: 60, size: "max" }), async (moves) => {
      const opened = openResources()
      const { resources, scheduler, holds, buffer, counts } = opened
      const starts = await playAll(opened, moves)
      await settled()
      // as a batch ends: no further line starts, those that run are interrupted, the rest is
      // committed
      await Effect.runPromise(Fiber.interruptAll(starts))
      buffer.close()
      await Effect.runPromise(Fiber.interruptAll([...resources.fibers]))
      release(buffer.drain(), 2)

      const { permits, holds: opens, expected } = counts
      expect(counts).toEqual({
        permits,
        // a start that was given up as it got its permit has given that back by itself
        freedPermits: permits,
        holds: opens,
        freedHolds: opens,
        expected,
        arrived: expected,
      })
      expect([opens, expected]).toEqual([permits, permits])
      expect([resources.fibers.size, buffer.take()]).toEqual([0, { items: [], isOver: true }])
      const probe = holds.open()
      await Effect.runPromise(
        Effect.ignore(probe.attempt(Effect.fail(apiError("insufficient_quota")))),
      )
      expect(holds.isAwaited).toBe(false)
      expect(await Effect.runPromise(probe.freed), "nothing is held").toBe(false)
      await expectFree(scheduler)
      for (const { act, event } of moves) seen.add(act === "event" ? event : act)
    }),
    { numRuns: 200 },
  )
  expect(seen.size).toBe(events.length + 6)
}, 30_000)

it("answers with its slot free at once, and keeps money and bytes until its commit", async () => {
  const { resources, scheduler, holds, buffer } = openResources()
  const line = makeLine(1)
  await Effect.runPromise(startLine(resources, { tenant: "a", bytes: 0 }, line.run))
  line.send("answer")
  await settled()
  const waiting = holds.open()
  await Effect.runPromise(
    Effect.ignore(waiting.attempt(Effect.fail(apiError("insufficient_quota")))),
  )
  const freed = Effect.runPromise(waiting.freed)
  const permits = await Promise.all(
    Array.from({ length: slots }, () => Effect.runPromise(scheduler.acquire("a", 0))),
  )
  expect([permits.length, holds.isAwaited]).toEqual([slots, true])
  release(buffer.take().items)
  expect(await freed).toBe(true)
})
