import { Effect, Schema } from "effect"
import { expect } from "vitest"
import type { JobHandler } from "../../../core/ports/queue.ts"
import type { QueueCases } from "../queue.ts"
import { eventually, makeGate, record } from "./recorder.ts"

const Invoice = Schema.Struct({
  id: Schema.String,
  micros: Schema.BigIntFromString,
  lines: Schema.Array(Schema.NullOr(Schema.Finite)),
})

export const queueDeliveryCases: QueueCases = {
  "runs what was sent before and after it began to consume, once": (opened) =>
    Effect.gen(function* () {
      const { handler, began, succeeded } = record()
      yield* opened.queue.send(handler, "before")
      yield* opened.queue.consume(handler)
      yield* opened.queue.send(handler, "after")
      yield* eventually(opened, () => expect(succeeded).toEqual(["before", "after"]))
      yield* opened.advance(3_600_000)
      expect(began).toEqual(["before", "after"])
    }),

  "carries a job through its codec": (opened) =>
    Effect.gen(function* () {
      const seen: (typeof Invoice.Type)[] = []
      const handler: JobHandler<typeof Invoice.Type> = {
        ...record().handler,
        codec: Invoice,
        run: (job) => Effect.sync(() => void seen.push(job)),
      }
      const sent = {
        id: "ü\u2028\"'",
        micros: 12_345_678_901_234_567_890n,
        lines: [1.5, null, -0.25],
      }
      yield* opened.queue.consume(handler)
      yield* opened.queue.send(handler, sent)
      yield* eventually(opened, () => expect(seen).toEqual([sent]))
    }),

  "refuses a job that does not fit its codec": (opened) =>
    Effect.gen(function* () {
      const { handler } = record()
      expect(yield* Effect.flip(opened.queue.send(handler, 7 as unknown as string))).toMatchObject({
        _tag: "PortError",
        port: "queue",
      })
    }),

  "keeps handlers apart": (opened) =>
    Effect.gen(function* () {
      const one = record({ name: "one" })
      const two = record({ name: "two" })
      yield* opened.queue.consume(one.handler)
      yield* opened.queue.send(one.handler, "for one")
      yield* opened.queue.send(two.handler, "for two")
      yield* opened.advance(1000)
      yield* eventually(opened, () => expect(one.succeeded).toEqual(["for one"]))
      expect(two.began).toEqual([])
      yield* opened.queue.consume(two.handler)
      yield* eventually(opened, () => expect(two.succeeded).toEqual(["for two"]))
    }),

  "starts a delayed job at its time, not before": (opened) =>
    Effect.gen(function* () {
      const { handler, began } = record()
      yield* opened.queue.consume(handler)
      yield* opened.queue.send(handler, "later", { delayMs: 60_000 })
      yield* opened.queue.send(handler, "now", { delayMs: 0, priority: -5 })
      yield* opened.advance(59_000)
      expect(began).toEqual(["now"])
      yield* opened.advance(1000)
      yield* eventually(opened, () => expect(began).toEqual(["now", "later"]))
    }),

  "takes the higher priority first, then what is due longer": (opened) =>
    Effect.gen(function* () {
      const { handler, succeeded } = record()
      for (const [text, priority] of [
        ["low", -1],
        ["first", 0],
        ["high", 9],
        ["second", undefined],
        ["higher", 10],
      ] as const) {
        yield* opened.queue.send(handler, text, priority === undefined ? {} : { priority })
        yield* opened.advance(10)
      }
      yield* opened.queue.send(handler, "highest, but not due", { priority: 99, delayMs: 60_000 })
      yield* opened.queue.consume(handler)
      yield* eventually(opened, () =>
        expect(succeeded).toEqual(["higher", "high", "first", "second", "low"]),
      )
    }),

  "runs as many at once as the handler allows, in each process": (opened) =>
    Effect.gen(function* () {
      const gate = makeGate()
      const here = record({ concurrency: 3 }, () => gate.pass)
      const there = record({ concurrency: 2 }, () => gate.pass)
      for (let n = 0; n < 9; n++) yield* opened.queue.send(here.handler, `${n}`)
      yield* opened.queue.consume(here.handler)
      yield* eventually(opened, () => expect(here.began).toHaveLength(3))
      yield* opened.other.consume(there.handler)
      yield* eventually(opened, () => expect(there.began).toHaveLength(2))
      yield* opened.advance(1000)
      expect([here.most, there.most]).toEqual([3, 2])
      yield* gate.open
      yield* eventually(opened, () =>
        expect(new Set([...here.succeeded, ...there.succeeded]).size).toBe(9),
      )
      expect(here.began.length + there.began.length).toBe(9)
      expect([here.most, there.most]).toEqual([3, 2])
    }),
}
