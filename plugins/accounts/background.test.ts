import { Deferred, Effect, Exit, Scope } from "effect"
import { expect, it, vi } from "vitest"
import { fakeLog } from "../../testing/index.ts"
import { makeBackground } from "./background.ts"

const open = async () => {
  const scope = Scope.makeUnsafe()
  const log = fakeLog()
  const background = await Effect.runPromise(makeBackground(log).pipe(Scope.provide(scope)))
  return { background, log, close: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
}

it("goes on after work that failed, with a line in the log", async () => {
  const { background, log, close } = await open()
  const done: number[] = []
  background.later("a thing", Effect.fail(new Error("no")))
  background.later("a thing", Effect.die(new Error("a bug")))
  for (let n = 0; n < 10; n++)
    background.later(
      "a thing",
      Effect.sync(() => void done.push(n)),
    )
  await vi.waitFor(() => expect(background.pending()).toBe(0))
  expect(done).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
  expect(log.lines.map(({ level, message }) => `${level} ${message}`)).toEqual([
    "error a thing failed",
    "error a thing failed",
  ])
  await close()
})

it("does what waits before it closes", async () => {
  const { background, close } = await open()
  const [started, gate] = [Deferred.makeUnsafe<void>(), Deferred.makeUnsafe<void>()]
  const done: number[] = []
  for (let n = 0; n < 5; n++)
    background.later(
      "a thing",
      Deferred.succeed(started, undefined).pipe(
        Effect.andThen(Deferred.await(gate)),
        Effect.andThen(Effect.sync(() => void done.push(n))),
      ),
    )
  await Effect.runPromise(Deferred.await(started))
  const closed = close()
  await Effect.runPromise(Deferred.succeed(gate, undefined))
  await closed
  expect(done).toHaveLength(5)
})

it("drops what is too much, and says so", async () => {
  const { background, log, close } = await open()
  const gate = Deferred.makeUnsafe<void>()
  for (let n = 0; n < 1_100; n++) background.later("a thing", Deferred.await(gate))
  expect(background.pending()).toBeLessThanOrEqual(1_002)
  expect(log.lines.length).toBeGreaterThanOrEqual(98)
  await Effect.runPromise(Deferred.succeed(gate, undefined))
  await close()
  expect(background.pending()).toBe(0)
})
