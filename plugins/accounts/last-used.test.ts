import { Context, Effect, Exit, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { expect, it } from "vitest"
import { defaultLimits, PortError } from "../../core/index.ts"
import { fakeClock, fakeLog } from "../../testing/index.ts"
import type { KeyRecord, KeyRows } from "./key-rows.ts"
import { flushInBackground, makeLastUsed } from "./last-used.ts"

const keyOf = (id: string, lastUsedMs = Number.NEGATIVE_INFINITY): KeyRecord => ({
  id,
  caller: {
    tenant: { account: "acct_1", mode: "live" },
    scopes: ["*"],
    role: "user",
    limits: defaultLimits,
  },
  revoked: false,
  verified: true,
  suspended: false,
  lastUsedMs,
  expiresMs: Number.POSITIVE_INFINITY,
  playground: false,
})

const setUp = () => {
  const clock = fakeClock()
  const log = fakeLog()
  const written: Record<string, number>[] = []
  let failing = false
  const keys = {
    markUsed: (uses: ReadonlyMap<string, number>) =>
      failing
        ? Effect.fail(new PortError({ port: "database", message: "down" }))
        : Effect.sync(() => void written.push(Object.fromEntries(uses))),
  } as unknown as KeyRows
  return {
    clock,
    log,
    written,
    fail: (on: boolean) => (failing = on),
    lastUsed: makeLastUsed(keys, clock, log),
  }
}

it("writes many keys at once, each at most once a minute", async () => {
  const { clock, written, lastUsed } = setUp()
  const startMs = clock.nowMs()
  for (let i = 0; i < 100; i++) lastUsed.note(keyOf("a"))
  lastUsed.note(keyOf("b"))
  lastUsed.note(keyOf("just-written-by-another-server", startMs - 59_999))
  await Effect.runPromise(lastUsed.flush)
  clock.advance(59_999)
  lastUsed.note(keyOf("a"))
  await Effect.runPromise(lastUsed.flush)
  clock.advance(1)
  lastUsed.note(keyOf("a"))
  await Effect.runPromise(lastUsed.flush)
  expect(written).toEqual([{ a: startMs, b: startMs }, { a: startMs + 60_000 }])
})

it("logs a failure and goes on", async () => {
  const { clock, log, written, fail, lastUsed } = setUp()
  fail(true)
  lastUsed.note(keyOf("a"))
  await Effect.runPromise(lastUsed.flush)
  expect(log.lines.map((line) => line.level)).toEqual(["warn"])
  fail(false)
  clock.advance(60_000)
  lastUsed.note(keyOf("a"))
  await Effect.runPromise(lastUsed.flush)
  expect(written).toHaveLength(1)
})

it("holds a bounded number of keys", async () => {
  const { written, lastUsed } = setUp()
  for (let i = 0; i < 20_000; i++) lastUsed.note(keyOf(`key-${i}`))
  await Effect.runPromise(lastUsed.flush)
  expect(Object.keys(written[0] ?? {})).toHaveLength(10_000)
})

it("flushes every 5 s and when its Scope closes", async () => {
  const { clock, written, lastUsed } = setUp()
  const services = await Effect.runPromise(
    Layer.build(TestClock.layer()).pipe(Scope.provide(Scope.makeUnsafe())),
  )
  const run = Effect.runPromiseWith(Context.merge(Context.empty(), services))
  const scope = Scope.makeUnsafe()
  await run(flushInBackground(lastUsed).pipe(Scope.provide(scope)))
  await run(Effect.yieldNow)
  lastUsed.note(keyOf("a"))
  await run(TestClock.adjust("4999 millis"))
  expect(written).toHaveLength(0)
  await run(TestClock.adjust("1 millis"))
  expect(written).toHaveLength(1)
  clock.advance(60_000)
  lastUsed.note(keyOf("a"))
  await run(Scope.close(scope, Exit.void))
  expect(written).toHaveLength(2)
})
