import { Effect, Fiber, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { afterAll, beforeAll, expect, it } from "vitest"
import { defaultLimits, PortError } from "../../core/index.ts"
import { fakeLog } from "../../testing/index.ts"
import { makeApiKey } from "./api-key.ts"
import { makeKeyRows } from "./key-rows.ts"
import { lifeMs } from "./mails/mail-tokens.ts"
import { keepSwept, sweepExpired } from "./sweeper.ts"
import { accountsOf, password } from "./testing/accounts.ts"
import { openSessionFixture, type SessionFixture } from "./testing/session-fixture.ts"

let fixture: SessionFixture
beforeAll(async () => {
  fixture = await openSessionFixture()
})
afterAll(() => fixture?.close())

it("keeps tokens for 30 days after their time, so that late ones are still known", async () => {
  const accounts = accountsOf(fixture)
  const email = accounts.newEmail()
  await accounts.post("signup", { email, password })
  const tokens = async () =>
    (await fixture.tables.selectFrom("accounts_token").select("purpose").execute()).length
  const sweep = () => Effect.runPromise(sweepExpired(fixture.database, fixture.clock))
  fixture.clock.advance(lifeMs.verify + 30 * 24 * 3_600_000 - 1)
  expect(await sweep()).toBe(1)
  expect(await tokens()).toBe(1)
  fixture.clock.advance(1)
  expect(await sweep()).toBe(1)
  expect(await tokens()).toBe(0)
})

it("forgets keys that ended 30 days ago, and no others", async () => {
  const accounts = accountsOf(fixture)
  const email = accounts.newEmail()
  await accounts.post("signup", { email, password })
  const { id: account } = await fixture.tables
    .selectFrom("accounts_account")
    .select("id")
    .where("email", "=", email)
    .executeTakeFirstOrThrow()
  const createdMs = fixture.clock.nowMs()
  const add = (name: string, expiresMs?: number) =>
    makeKeyRows(fixture.database).insert({
      id: `key_${name}`,
      account,
      name,
      key: makeApiKey("live"),
      mode: "live",
      limits: defaultLimits,
      createdMs,
      ...(expiresMs && { expiresMs, playground: true }),
    })
  await Effect.runPromise(
    Effect.all([add("lasting"), add("ended", createdMs + 1), add("later", createdMs + 2)]),
  )
  const names = async () =>
    (
      await fixture.tables
        .selectFrom("accounts_key")
        .select("name")
        .where("account_id", "=", account)
        .orderBy("name")
        .execute()
    ).map(({ name }) => name)
  fixture.clock.advance(1 + 30 * 24 * 3_600_000)
  await Effect.runPromise(sweepExpired(fixture.database, fixture.clock))
  expect(await names()).toEqual(["lasting", "later"])
})

it("sweeps however much there is", async () => {
  const expired = Array.from({ length: 4_100 }, (_, n) => {
    const bucket = Buffer.alloc(32)
    bucket.writeUInt32BE(n)
    return { bucket, at_ms: [1n], taken: true, expires_at: new Date(fixture.clock.nowMs()) }
  })
  for (let at = 0; at < expired.length; at += 1_000)
    await fixture.tables
      .insertInto("accounts_attempt")
      .values(expired.slice(at, at + 1_000))
      .execute()
  expect(await Effect.runPromise(sweepExpired(fixture.database, fixture.clock))).toBe(4_100)
})

it("sweeps every ten minutes, also after a turn that failed", async () => {
  const services = await Effect.runPromise(
    Layer.build(TestClock.layer()).pipe(Scope.provide(Scope.makeUnsafe())),
  )
  const log = fakeLog()
  let sweeps = 0
  const sweep = Effect.suspend(() =>
    ++sweeps === 2
      ? Effect.fail(new PortError({ port: "database", message: "down" }))
      : Effect.succeed(0),
  )
  const fiber = Effect.runForkWith(services)(
    Effect.scoped(Effect.andThen(keepSwept(sweep, log), Effect.never)),
  )
  for (let turn = 0; turn < 3; turn++)
    await Effect.runPromiseWith(services)(TestClock.adjust("10 minutes"))
  await Effect.runPromiseWith(services)(Fiber.interrupt(fiber))
  expect(sweeps).toBe(4)
  expect(log.lines.filter(({ level }) => level === "warn")).toHaveLength(1)
})
