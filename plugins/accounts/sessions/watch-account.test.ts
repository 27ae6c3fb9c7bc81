import { Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Call, Endpoint, Json } from "../../../core/index.ts"
import { accountsOf } from "../testing/accounts.ts"
import { openSessionFixture, type SessionFixture } from "../testing/session-fixture.ts"
import { changesOf, watchEndpoint } from "./watch-account.ts"

/** What is seen in 20 seconds of these values, one at each look; the last stays. */
const watched = <A>(values: readonly A[]) =>
  Effect.gen(function* () {
    const rest = [...values]
    const show = Effect.sync(() => (rest.length > 1 ? rest.shift()! : rest[0]!))
    const fiber = yield* Effect.forkChild(Stream.runCollect(changesOf(show)))
    for (let second = 0; second < 20; second++) yield* TestClock.adjust("1 second")
    return yield* Fiber.join(fiber)
  }).pipe(Effect.provide(TestClock.layer()), Effect.runPromise)

describe("changes", () => {
  it("are the present value and each other one, until the stream ends after 20 seconds", async () => {
    const values = [1, 1, 1, 2, 2, 3, 3, 1].map((balance) => ({ balance }))
    const seen = await watched(values)
    expect(seen).toEqual([1, 2, 3, 1].map((balance) => ({ balance })))
  })
  it("are not asked for more often than every 2 seconds", async () => {
    const values = Array.from({ length: 100 }, (_, n) => n)
    const seen = await watched(values)
    expect(seen.length).toBeGreaterThan(8)
    expect(seen.length).toBeLessThan(12)
  })
})

describe("GET /dashboard/events", () => {
  let fixture: SessionFixture
  let accounts: ReturnType<typeof accountsOf>
  let endpoint: Endpoint
  beforeAll(async () => {
    fixture = await openSessionFixture()
    accounts = accountsOf(fixture)
    endpoint = watchEndpoint(Effect.succeed(fixture.deps))
  })
  afterAll(() => fixture?.close())

  /** The reply to a call by this account, open until the scope closes. */
  const opened = (account: string) => {
    const call = { caller: { tenant: { account, mode: "live" } } } as Call<Json>
    return Effect.flatMap(endpoint.plan(call), ({ run }) => run)
  }
  it("begins with the account as it is", async () => {
    const { id, email } = await accounts.signUp({ verified: true })
    const first = Effect.flatMap(opened(id), (reply) =>
      "events" in reply ? Stream.runHead(reply.events) : Effect.die("no events"),
    )
    expect(await Effect.runPromise(Effect.scoped(first))).toMatchObject({
      value: { object: "account.event", account: { id, email, balance_idr: 50_000 } },
    })
  })

  it("is 429 while ten of the account are open; others may watch theirs", async () => {
    const [mine, other] = [await accounts.signUp(), await accounts.signUp()]
    const ten = Effect.forEach(Array.from({ length: 10 }), () => opened(mine.id))
    const more = Effect.gen(function* () {
      yield* ten
      yield* opened(other.id)
      return yield* Effect.flip(opened(mine.id))
    })
    expect(await Effect.runPromise(Effect.scoped(more))).toMatchObject({
      code: "concurrency_exceeded",
    })
    await Effect.runPromise(Effect.scoped(ten))
  })

  it("ends with the error of an account that is gone", async () => {
    const reply = Effect.flatMap(opened("acct_none"), (made) =>
      "events" in made ? Effect.flip(Stream.runDrain(made.events)) : Effect.die("no events"),
    )
    expect(await Effect.runPromise(Effect.scoped(reply))).toMatchObject({
      code: "authentication_error",
    })
  })
})
