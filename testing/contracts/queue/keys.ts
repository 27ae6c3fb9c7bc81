import { Effect } from "effect"
import { expect } from "vitest"
import { PortError } from "../../../core/errors.ts"
import type { JobHandler } from "../../../core/ports/queue.ts"
import type { OpenedQueue, QueueCases } from "../queue.ts"
import { eventually, longestBackoffMs, makeGate, record } from "./recorder.ts"

const broken = Effect.fail(new PortError({ port: "test", message: "broken" }))

/** The outcome of a run is stored a little later than the run ends. */
const untilReleased = (opened: OpenedQueue, handler: JobHandler<string>, key: string) =>
  Effect.gen(function* () {
    for (let tries = 0; tries < 400 && (yield* opened.queue.held(handler, [key])).size > 0; tries++)
      yield* opened.advance(0)
  })

export const queueKeyCases: QueueCases = {
  "ignores a send while its key waits": (opened) =>
    Effect.gen(function* () {
      const { handler, succeeded } = record()
      yield* opened.queue.send(handler, "first", { key: "k", delayMs: 5000 })
      yield* opened.other.send(handler, "second", { key: "k" })
      yield* opened.queue.send(handler, "another", { key: "l" })
      yield* opened.queue.consume(handler)
      yield* eventually(opened, () => expect(succeeded).toEqual(["another"]))
      yield* opened.advance(5000)
      yield* eventually(opened, () => expect(succeeded).toEqual(["another", "first"]))
    }),

  "ignores a send while its key runs, and takes one after it": (opened) =>
    Effect.gen(function* () {
      const gate = makeGate()
      const { handler, began, succeeded } = record({ concurrency: 4 }, () => gate.pass)
      yield* opened.queue.consume(handler)
      yield* opened.queue.send(handler, "first", { key: "k" })
      yield* eventually(opened, () => expect(began).toEqual(["first"]))
      yield* opened.queue.send(handler, "while it runs", { key: "k" })
      yield* opened.advance(1000)
      yield* gate.open
      yield* eventually(opened, () => expect(succeeded).toEqual(["first"]))
      yield* untilReleased(opened, handler, "k")
      yield* opened.queue.send(handler, "after it", { key: "k" })
      yield* eventually(opened, () => expect(succeeded).toEqual(["first", "after it"]))
    }),

  "ignores a send while its key waits for a retry": (opened) =>
    Effect.gen(function* () {
      const { handler, began, succeeded } = record({}, (_, nthRun) =>
        nthRun === 1 ? broken : Effect.void,
      )
      yield* opened.queue.consume(handler)
      yield* opened.queue.send(handler, "first", { key: "k" })
      yield* eventually(opened, () => expect(began).toEqual(["first"]))
      yield* opened.queue.send(handler, "second", { key: "k" })
      yield* opened.advance(longestBackoffMs)
      yield* eventually(opened, () => expect(succeeded).toEqual(["first"]))
      expect(began).toEqual(["first", "first"])
    }),

  "takes a key again when its job is dead": (opened) =>
    Effect.gen(function* () {
      const { handler, began } = record({ attempts: 1 }, () => broken)
      yield* opened.queue.consume(handler)
      yield* opened.queue.send(handler, "first", { key: "k" })
      yield* eventually(opened, () => expect(began).toEqual(["first"]))
      yield* untilReleased(opened, handler, "k")
      yield* opened.queue.send(handler, "second", { key: "k" })
      yield* eventually(opened, () => expect(began).toEqual(["first", "second"]))
    }),

  "keeps the keys of two handlers apart, and sends without a key": (opened) =>
    Effect.gen(function* () {
      const one = record({ name: "one" })
      const two = record({ name: "two" })
      for (const text of ["a", "b"]) {
        yield* opened.queue.send(one.handler, text, { key: "k" })
        yield* opened.queue.send(two.handler, text)
      }
      yield* opened.queue.send(two.handler, "c", { key: "k" })
      yield* opened.queue.consume(one.handler)
      yield* opened.queue.consume(two.handler)
      yield* eventually(opened, () =>
        expect([one.succeeded, [...two.succeeded].sort()]).toEqual([["a"], ["a", "b", "c"]]),
      )
    }),

  "says which keys of a handler wait or run, and no others": (opened) =>
    Effect.gen(function* () {
      const gate = makeGate()
      const { handler, began, succeeded } = record({ attempts: 1 }, (text) =>
        text === "dies" ? broken : gate.pass,
      )
      const held = (name = handler.name) =>
        Effect.map(opened.other.held({ name }, ["k", "l", "dead", "none"]), (keys) =>
          [...keys].sort(),
        )
      expect(yield* held()).toEqual([])
      yield* opened.queue.send(handler, "dies", { key: "dead" })
      yield* opened.queue.consume(handler)
      yield* eventually(opened, () => expect(began).toEqual(["dies"]))
      yield* opened.advance(1000)
      yield* opened.queue.send(handler, "runs", { key: "k" })
      yield* opened.queue.send(handler, "waits", { key: "l", delayMs: 1_000_000 })
      yield* eventually(opened, () => expect(began).toEqual(["dies", "runs"]))
      expect(yield* held()).toEqual(["k", "l"])
      expect(yield* held("another")).toEqual([])
      yield* gate.open
      yield* eventually(opened, () => expect(succeeded).toEqual(["runs"]))
      // its row goes some time after its handler has succeeded
      let keys = yield* held()
      for (let tries = 0; keys.length > 1 && tries < 400; tries++) {
        yield* opened.advance(0)
        keys = yield* held()
      }
      expect(keys).toEqual(["l"])
    }),
}
