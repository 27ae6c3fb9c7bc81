import { Deferred, Effect, Fiber } from "effect"
import { expect } from "vitest"
import type { QueueCases } from "../queue.ts"
import { eventually, record } from "./recorder.ts"

export const queueTransactionCases: QueueCases = {
  "shows a job when its transaction commits, not before": (opened) =>
    Effect.gen(function* () {
      if (opened.transaction === undefined) return
      const { handler, began, succeeded } = record()
      yield* opened.queue.consume(handler)
      yield* opened.transaction((tx) =>
        Effect.gen(function* () {
          yield* opened.queue.send(handler, "a", {}, tx)
          yield* opened.queue.send(handler, "b", { key: "k" }, tx)
          yield* opened.queue.send(handler, "b again", { key: "k" }, tx)
          yield* opened.advance(1000)
          expect(began).toEqual([])
        }),
      )
      yield* eventually(opened, () => expect([...succeeded].sort()).toEqual(["a", "b"]))
    }),

  "never shows one whose transaction failed": (opened) =>
    Effect.gen(function* () {
      if (opened.transaction === undefined) return
      const { handler, began, succeeded } = record()
      yield* opened.queue.consume(handler)
      const failing = opened.transaction((tx) =>
        Effect.andThen(opened.queue.send(handler, "ghost", { key: "k" }, tx), Effect.fail("no")),
      )
      expect(yield* Effect.flip(failing)).toBe("no")
      yield* opened.advance(1000)
      yield* opened.queue.send(handler, "real", { key: "k" })
      yield* eventually(opened, () => expect(succeeded).toEqual(["real"]))
      expect(began).toEqual(["real"])
    }),

  "never shows one whose transaction was interrupted": (opened) =>
    Effect.gen(function* () {
      if (opened.transaction === undefined) return
      const { handler, began } = record()
      const sent = Deferred.makeUnsafe<void>()
      yield* opened.queue.consume(handler)
      const fiber = yield* Effect.forkChild(
        opened.transaction((tx) =>
          opened.queue
            .send(handler, "ghost", {}, tx)
            .pipe(Effect.andThen(Deferred.succeed(sent, undefined)), Effect.andThen(Effect.never)),
        ),
      )
      yield* Deferred.await(sent)
      yield* Fiber.interrupt(fiber)
      yield* opened.advance(60_000)
      expect(began).toEqual([])
    }),
}
