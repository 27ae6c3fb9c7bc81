import { Effect } from "effect"
import { sql } from "kysely"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Database, PortError, type Tenant } from "../../core/index.ts"
import { makeSecrets } from "../../runtime/services/secrets.ts"
import { idempotencyContract } from "../../testing/contracts/idempotency.ts"
import { fakeClock } from "../../testing/index.ts"
import { openTestDatabase, type TestDatabase } from "../../testing/postgres.ts"
import { migrations } from "./migrations.ts"
import {
  type IdempotencyTables,
  leaseMs,
  makePostgresIdempotency,
  renewMs,
} from "./postgres-idempotency.ts"
import { makeRunningAttempts } from "./running-attempts.ts"

const open = async () => {
  const test = await openTestDatabase()
  await Effect.runPromise(test.database.migrate("idempotency-postgres", migrations))
  return test
}
const secrets = makeSecrets("shared")

idempotencyContract("idempotency-postgres", async () => {
  const test = await open()
  const clock = fakeClock()
  const other = await test.openAgain()
  return {
    idempotency: makePostgresIdempotency(test.database, clock, secrets),
    second: makePostgresIdempotency(other, clock, secrets),
    clock,
    close: () => test.close(),
  }
})

describe("a reply at rest", () => {
  const tenant: Tenant = { account: "acct_1", mode: "live" }
  const clock = fakeClock()
  const run = Effect.runPromise
  let test: TestDatabase
  beforeAll(async () => {
    test = await open()
  })
  afterAll(() => test?.close())
  const rowOf = (key: string) =>
    test.database
      .queries<IdempotencyTables>()
      .selectFrom("idempotency_key")
      .selectAll()
      .where("key", "=", key)
      .executeTakeFirstOrThrow()

  it("is encrypted", async () => {
    const store = makePostgresIdempotency(test.database, clock, secrets)
    await run(store.begin(tenant, "encrypted", "body"))
    await run(
      store.finish(tenant, "encrypted", {
        status: 201,
        json: { key: "svc_live_secret" },
        callId: "call",
      }),
    )
    const row = await rowOf("encrypted")
    expect(row).toMatchObject({ sealed_by: secrets.keyId, call_id: "call", status: 201 })
    expect(JSON.stringify(row)).not.toContain("svc_live")
    expect(secrets.decrypt(row.reply!)).toBe('{"key":"svc_live_secret"}')
  })

  it("that was encrypted with another secret is a failure that says what to do; a mismatch is still found", async () => {
    const store = makePostgresIdempotency(test.database, clock, makeSecrets("another"))
    const failed = await run(Effect.flip(store.begin(tenant, "encrypted", "body")))
    expect(failed).toMatchObject({
      _tag: "PortError",
      port: "idempotency",
      message: expect.stringContaining("RAKIT_SECRET_KEY"),
    })
    expect(await run(store.begin(tenant, "encrypted", "other"))).toEqual({ state: "mismatch" })
    // a server with the right secret still returns it
    expect(
      await run(
        makePostgresIdempotency(test.database, clock, secrets).begin(tenant, "encrypted", "body"),
      ),
    ).toMatchObject({ state: "done" })
  })

  it("that was written before replies were encrypted is read as it is", async () => {
    const store = makePostgresIdempotency(test.database, clock, secrets)
    await run(store.begin(tenant, "plain", "body"))
    await sql`UPDATE idempotency_key SET state = 'done', status = 200, reply = '{"a":1}' WHERE key = 'plain'`.execute(
      test.database.queries(),
    )
    expect(await run(store.begin(tenant, "plain", "body"))).toStrictEqual({
      state: "done",
      reply: { status: 200, json: { a: 1 } },
    })
  })
})

describe("the lease of a key", () => {
  const tenant: Tenant = { account: "acct_1", mode: "live" }
  const run = Effect.runPromise
  let test: TestDatabase
  beforeAll(async () => {
    test = await open()
  })
  afterAll(() => test?.close())

  it("is renewed while its request runs, and ends 15 s after a server that was killed", async () => {
    const clock = fakeClock()
    const [first, second] = [1, 2].map(() => makePostgresIdempotency(test.database, clock, secrets))
    await run(first!.begin(tenant, "long", "body"))
    for (let renewals = 0; renewals < 20; renewals++) {
      clock.advance(renewMs)
      await run(first!.renew)
      // the renewals of others hold nothing
      await run(second!.renew)
      expect(await run(second!.begin(tenant, "long", "body"))).toEqual({
        state: "running",
        leaseLeftMs: leaseMs,
      })
    }
    clock.advance(leaseMs - 1)
    await run(second!.renew)
    expect(await run(second!.begin(tenant, "long", "body"))).toEqual({
      state: "running",
      leaseLeftMs: 1,
    })
    clock.advance(1)
    expect(await run(second!.begin(tenant, "long", "body"))).toEqual({ state: "new" })
    // the first one lives after all: it renews nothing that is another's
    await run(first!.renew)
    clock.advance(leaseMs)
    expect(await run(first!.begin(tenant, "long", "body"))).toEqual({ state: "new" })
  })

  it("is no longer renewed when the request has ended, and a reply stays", async () => {
    const clock = fakeClock()
    const store = makePostgresIdempotency(test.database, clock, secrets)
    await run(store.begin(tenant, "ended", "body"))
    await run(store.finish(tenant, "ended", { status: 200, json: 1 }))
    clock.advance(leaseMs)
    await run(store.renew)
    expect(await run(store.begin(tenant, "ended", "body"))).toMatchObject({ state: "done" })
  })
})

it("says no longer wait than a lease, where the server that holds the key has a clock ahead", async () => {
  const test = await open()
  try {
    const [ahead, clock] = [fakeClock(), fakeClock()]
    ahead.advance(60_000)
    const tenant: Tenant = { account: "acct_1", mode: "live" }
    const begin = (of: typeof clock) =>
      Effect.runPromise(
        makePostgresIdempotency(test.database, of, secrets).begin(tenant, "ahead", "body"),
      )
    expect(await begin(ahead)).toEqual({ state: "new" })
    expect(await begin(clock)).toEqual({ state: "running", leaseLeftMs: leaseMs })
  } finally {
    await test.close()
  }
})

it("remembers the newest attempts only", () => {
  const attempts = makeRunningAttempts(2)
  const tenant: Tenant = { account: "a", mode: "live" }
  for (const key of ["k1", "k2", "k1", "k3"]) attempts.add(tenant, key, `of ${key}`)
  expect(["k1", "k2", "k3", "k3"].map((key) => attempts.take(tenant, key))).toEqual([
    "of k1",
    undefined,
    "of k3",
    undefined,
  ])
})

describe("while the database is away", () => {
  const tenant: Tenant = { account: "acct_1", mode: "live" }
  const run = Effect.runPromise
  let test: TestDatabase
  beforeAll(async () => {
    test = await open()
  })
  afterAll(() => test?.close())

  it("an end is written when it is back: the reply is remembered, a failed request may come again", async () => {
    const state = { isAway: false }
    const gone = new PortError({ port: "database", message: "gone", why: "unavailable" })
    const database: Database = {
      ...test.database,
      run: (query) =>
        Effect.suspend(() => (state.isAway ? Effect.fail(gone) : test.database.run(query))),
    }
    const store = makePostgresIdempotency(database, fakeClock(), secrets)
    await run(store.begin(tenant, "done", "body"))
    await run(store.begin(tenant, "failed", "body"))
    state.isAway = true
    await run(store.finish(tenant, "done", { status: 200, json: { n: 1 } }))
    await run(store.forget(tenant, "failed"))
    expect(await run(Effect.flip(store.begin(tenant, "new", "body")))).toBe(gone)
    state.isAway = false
    await expect
      .poll(() => run(store.begin(tenant, "done", "body")))
      .toMatchObject({ state: "done", reply: { status: 200, json: { n: 1 } } })
    await expect.poll(() => run(store.begin(tenant, "failed", "body"))).toEqual({ state: "new" })
  })
})
