import { Deferred, Effect, Fiber } from "effect"
import { expect, it } from "vitest"
import { fakeLog, fakeMetrics } from "../../testing/index.ts"
import { makeKeptSettlements } from "./kept-settlements.ts"
import { settlementOf } from "./testing/plain-ledger.ts"

it("sends each settlement once, however many ask at the same time", async () => {
  const sent: string[] = []
  const work = Effect.gen(function* () {
    const answered = yield* Deferred.make<void>()
    const kept = makeKeptSettlements({
      journal: undefined,
      log: fakeLog(),
      metrics: fakeMetrics(),
      settle: ({ id }) =>
        Effect.andThen(
          Effect.sync(() => sent.push(id)),
          Deferred.await(answered),
        ),
      onRefused: () => {},
    })
    yield* Effect.forEach(["a", "b"], (id) => kept.keep(settlementOf(id)))
    const both = yield* Effect.forkChild(
      Effect.all([kept.settleAll, kept.settleAll], { concurrency: 2 }),
      { startImmediately: true },
    )
    yield* Effect.yieldNow
    yield* Deferred.succeed(answered, undefined)
    yield* Fiber.join(both)
    expect(kept.size()).toBe(0)
  })
  await Effect.runPromise(work)
  expect(sent).toEqual(["a", "b"])
})
