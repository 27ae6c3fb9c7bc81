import { Effect, Exit, Fiber, Scope } from "effect"
import { expect, test, vi } from "vitest"
import { makeRefCounted } from "./ref-counted.ts"

const run = Effect.runPromise
const close = (scope: Scope.Closeable) => run(Scope.close(scope, Exit.void))

/** Counts opens and closes. */
const counted = () => {
  const shared = makeRefCounted<number, string>()
  const counts = { opened: 0, closed: 0 }
  const open = Effect.acquireRelease(
    Effect.sync(() => ++counts.opened),
    () => Effect.sync(() => void counts.closed++),
  ).pipe(Effect.delay("5 millis"))
  const get = (scope: Scope.Scope) => run(shared.get("key", open).pipe(Scope.provide(scope)))
  return { shared, counts, get, open }
}

test("owners share one; the last one frees it; then it is opened anew", async () => {
  const { counts, get } = counted()
  const [a, b, c] = [Scope.makeUnsafe(), Scope.makeUnsafe(), Scope.makeUnsafe()]
  expect(await Promise.all([get(a), get(b)])).toEqual([1, 1])
  await close(a)
  expect(counts).toEqual({ opened: 1, closed: 0 })
  await close(b)
  expect(counts).toEqual({ opened: 1, closed: 1 })
  expect(await get(c)).toBe(2)
  await close(c)
})

test("a failed open fails for all who wait, and is tried again by the next", async () => {
  const { shared, get } = counted()
  const broken = Effect.fail("broken").pipe(Effect.delay("5 millis"))
  const attempt = () => Effect.runPromiseExit(Effect.scoped(shared.get("key", broken)))
  for (const exit of await Promise.all([attempt(), attempt()]))
    expect(Exit.isFailure(exit)).toBe(true)
  const scope = Scope.makeUnsafe()
  expect(await get(scope)).toBe(1)
  await close(scope)
})

test("an opener that is interrupted does not leave others waiting", async () => {
  const { shared, get, counts } = counted()
  let begun = false
  const opening = Effect.andThen(
    Effect.sync(() => {
      begun = true
    }),
    Effect.never,
  )
  const opener = Effect.runFork(Effect.scoped(shared.get("key", opening)))
  await vi.waitUntil(() => begun)
  const waiter = Effect.runPromiseExit(Effect.scoped(shared.get("key", Effect.never)))
  await run(Fiber.interrupt(opener))
  expect(Exit.isFailure(await waiter)).toBe(true)
  const scope = Scope.makeUnsafe()
  expect(await get(scope)).toBe(1)
  await close(scope)
  expect(counts).toEqual({ opened: 1, closed: 1 })
})
