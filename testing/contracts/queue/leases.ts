import { Effect, Exit, Scope } from "effect"
import { expect } from "vitest"
import { PortError } from "../../../core/errors.ts"
import type { JobHandler, Queue } from "../../../core/ports/queue.ts"
import type { QueueCases } from "../queue.ts"
import { eventually, longestBackoffMs, makeGate, record } from "./recorder.ts"

const consumeUntilStopped = <Job>(queue: Queue, handler: JobHandler<Job>) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    yield* queue.consume(handler).pipe(Scope.provide(scope))
    return Scope.close(scope, Exit.void)
  })

export const queueLeaseCases: QueueCases = {
  "lets a living worker keep what it runs, however long": (opened) =>
    Effect.gen(function* () {
      const gate = makeGate()
      const here = record({ leaseMs: 10_000 }, () => gate.pass)
      const there = record({ leaseMs: 10_000 })
      yield* opened.queue.consume(here.handler)
      yield* opened.queue.send(here.handler, "long")
      yield* eventually(opened, () => expect(here.began).toEqual(["long"]))
      yield* opened.other.consume(there.handler)
      yield* opened.advance(100_000)
      yield* gate.open
      yield* eventually(opened, () => expect(here.succeeded).toEqual(["long"]))
      expect([here.interrupted, there.began]).toEqual([[], []])
    }),

  "runs it elsewhere when the worker is lost, after the lease and not before, and interrupts the lost run":
    (opened) =>
      Effect.gen(function* () {
        const here = record({ leaseMs: 10_000 }, () => Effect.never)
        const there = record({ leaseMs: 10_000 })
        yield* opened.queue.consume(here.handler)
        yield* opened.queue.send(here.handler, "orphan")
        yield* eventually(opened, () => expect(here.began).toEqual(["orphan"]))
        yield* opened.other.consume(there.handler)
        yield* opened.cutOff
        yield* opened.advance(1000)
        expect(there.began).toEqual([])
        yield* opened.advance(longestBackoffMs)
        yield* eventually(opened, () =>
          expect([there.succeeded, here.interrupted]).toEqual([["orphan"], ["orphan"]]),
        )
        expect(here.began).toEqual(["orphan"])
      }),

  "does not listen to a worker that has lost its lease": (opened) =>
    Effect.gen(function* () {
      const late = makeGate()
      const gate = makeGate()
      const broken = Effect.fail(new PortError({ port: "test", message: "too late" }))
      const here = record({ leaseMs: 10_000, attempts: 2 }, () =>
        Effect.uninterruptible(Effect.andThen(late.pass, broken)),
      )
      const there = record({ leaseMs: 10_000, attempts: 2 }, () => gate.pass)
      yield* opened.queue.consume(here.handler)
      yield* opened.queue.send(here.handler, "orphan")
      yield* eventually(opened, () => expect(here.began).toEqual(["orphan"]))
      yield* opened.cutOff
      yield* opened.other.consume(there.handler)
      yield* opened.advance(longestBackoffMs)
      yield* eventually(opened, () => expect(there.began).toEqual(["orphan"]))
      yield* late.open
      yield* opened.advance(longestBackoffMs)
      expect(there.began).toEqual(["orphan"])
      yield* gate.open
      yield* eventually(opened, () => expect(there.succeeded).toEqual(["orphan"]))
      yield* opened.advance(longestBackoffMs)
      expect([there.began, there.interrupted, yield* opened.deadLetters]).toEqual([
        ["orphan"],
        [],
        [],
      ])
    }),

  "counts a lost lease as an attempt": (opened) =>
    Effect.gen(function* () {
      const here = record({ attempts: 1 }, () => Effect.never)
      const there = record({ attempts: 1 })
      yield* opened.queue.consume(here.handler)
      yield* opened.queue.send(here.handler, "killer")
      yield* eventually(opened, () => expect(here.began).toEqual(["killer"]))
      yield* opened.cutOff
      yield* opened.other.consume(there.handler)
      yield* opened.advance(longestBackoffMs)
      expect(there.began).toEqual([])
      expect(yield* opened.deadLetters).toEqual(["killer"])
    }),

  "interrupts its runs when its Scope closes, waits for them, and begins no more": (opened) =>
    Effect.gen(function* () {
      const steps: string[] = []
      const slowEnd = Effect.andThen(
        Effect.yieldNow,
        Effect.sync(() => void steps.push("cleaned up")),
      )
      const { handler, began, interrupted } = record({ concurrency: 2 }, () =>
        Effect.onInterrupt(Effect.never, () => slowEnd),
      )
      const stop = yield* consumeUntilStopped(opened.queue, handler)
      yield* opened.queue.send(handler, "a")
      yield* opened.queue.send(handler, "b")
      yield* opened.queue.send(handler, "c")
      yield* eventually(opened, () => expect(began).toEqual(["a", "b"]))
      yield* stop
      expect([steps, [...interrupted].sort()]).toEqual([
        ["cleaned up", "cleaned up"],
        ["a", "b"],
      ])
      yield* opened.advance(longestBackoffMs)
      expect(began).toEqual(["a", "b"])
    }),

  "gives back what a stop has cut, without counting it": (opened) =>
    Effect.gen(function* () {
      const broken = Effect.fail(new PortError({ port: "test", message: "broken" }))
      const cut = record({ attempts: 2, leaseMs: 10_000 }, () => Effect.never)
      const next = record({ attempts: 2, leaseMs: 10_000 }, (_, nthRun) =>
        nthRun === 1 ? broken : Effect.void,
      )
      for (let n = 0; n < 3; n++) {
        const stop = yield* consumeUntilStopped(opened.queue, cut.handler)
        if (n === 0) yield* opened.queue.send(cut.handler, "patient")
        yield* eventually(opened, () => expect(cut.began).toHaveLength(n + 1))
        yield* stop
        yield* opened.advance(10_000)
      }
      yield* opened.other.consume(next.handler)
      yield* eventually(opened, () => expect(next.began).toEqual(["patient"]))
      yield* opened.advance(longestBackoffMs)
      yield* eventually(opened, () => expect(next.succeeded).toEqual(["patient"]))
      expect(yield* opened.deadLetters).toEqual([])
    }),

  "stops one handler and leaves the others": (opened) =>
    Effect.gen(function* () {
      const gate = makeGate()
      const stopped = record({ name: "stopped" })
      const others = record({ name: "others" }, () => gate.pass)
      const stop = yield* consumeUntilStopped(opened.queue, stopped.handler)
      yield* opened.queue.consume(others.handler)
      yield* opened.queue.send(others.handler, "x")
      yield* eventually(opened, () => expect(others.began).toEqual(["x"]))
      yield* stop
      yield* gate.open
      yield* eventually(opened, () => expect(others.succeeded).toEqual(["x"]))
      expect(others.interrupted).toEqual([])
    }),
}
