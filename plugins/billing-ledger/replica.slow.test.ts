import { spawn } from "node:child_process"
import { randomUUID } from "node:crypto"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { type Database, defaultLimits, PortError, uuidV7 } from "../../core/index.ts"
import { fakeClock, fakeLog, fakeMetrics } from "../../testing/index.ts"
import { openTestDatabase, type TestDatabase } from "../../testing/postgres.ts"
import { makeLedgerBilling } from "./ledger-billing.ts"
import { migrations } from "./migrations.ts"
import { makeReplica } from "./replica.ts"

let test: TestDatabase
beforeAll(async () => {
  test = await openTestDatabase()
  await Effect.runPromise(test.database.migrate("billing-ledger", migrations))
})
afterAll(() => test.close())

const run = Effect.runPromise
const fixture = (clock: ReturnType<typeof fakeClock>, database = test.database) => {
  const id = randomUUID()
  const settings = { maxGathered: 128, maxInFlight: 2, maxWaiting: 1000 }
  const billing = makeLedgerBilling({
    database,
    clock,
    log: fakeLog(),
    metrics: fakeMetrics(),
    settings,
    replica: id,
  })
  return { billing, replica: makeReplica(database, clock, id, 30_000) }
}
const callOf = (account: string, concurrency: number, holdMicros: bigint) => ({
  id: uuidV7(0),
  caller: {
    tenant: { account, mode: "live" as const },
    keyId: `${account}-key`,
    scopes: ["*"],
    role: "user" as const,
    limits: { ...defaultLimits, concurrency },
  },
  endpoint: "chat.completions",
  requestId: "r",
  holdMicros,
  counts: "all" as const,
})
const grant = (account: string, amountMicros: bigint) => ({
  id: randomUUID(),
  account,
  amountMicros,
  reason: "test",
})

it("frees slots and holds of a process that was killed", async () => {
  const child = spawn(
    process.execPath,
    [
      "--import",
      "tsx",
      fileURLToPath(new URL("./testing/killed-process.ts", import.meta.url)),
      test.url,
    ],
    {
      stdio: ["ignore", "pipe", "inherit"],
    },
  )
  try {
    const [line] = (await once(child.stdout, "data")) as [Buffer]
    expect(String(line)).toBe("3 calls open\n")
  } finally {
    child.kill("SIGKILL")
    await once(child, "exit")
  }
  const clock = fakeClock(Date.now())
  const { billing, replica } = fixture(clock)
  await run(replica.renew)
  expect(await run(replica.sweep)).toBe(0)
  expect(await run(Effect.flip(billing.admit(callOf("killed", 3, 0n))))).toMatchObject({
    reason: "concurrency",
  })
  clock.advance(31_000)
  await run(replica.renew)
  expect(await run(replica.sweep)).toBe(3)
  expect(await run(billing.balance("killed"))).toEqual({ balanceMicros: 100n, heldMicros: 0n })
  await run(billing.admit(callOf("killed", 3, 100n)))
})

it("expires the calls of a replica that went silent, not those of one that lives; a late settlement pays what is free", async () => {
  const clock = fakeClock()
  const [dead, living] = [fixture(clock), fixture(clock)]
  await run(Effect.andThen(dead.replica.renew, living.replica.renew))
  await run(living.billing.adjust(grant("a", 100n)))
  const [lost, kept] = [callOf("a", 2, 60n), callOf("a", 2, 30n)]
  await run(Effect.andThen(dead.billing.admit(lost), living.billing.admit(kept)))
  clock.advance(29_999)
  await run(living.replica.renew)
  expect(await run(living.replica.sweep)).toBe(0)
  clock.advance(1)
  expect(await run(living.replica.sweep)).toBe(1)
  expect(await run(living.billing.balance("a"))).toEqual({ balanceMicros: 100n, heldMicros: 30n })
  await run(living.billing.admit(callOf("a", 2, 50n)))
  await run(
    dead.billing.settle([
      { id: lost.id, outcome: "settled", costMicros: 60n, usage: {}, httpStatus: 200 },
    ]),
  )
  expect(await run(living.billing.balance("a"))).toEqual({ balanceMicros: 80n, heldMicros: 80n })
  await run(
    dead.billing.settle([
      { id: lost.id, outcome: "settled", costMicros: 60n, usage: {}, httpStatus: 200 },
    ]),
  )
  expect(await run(living.billing.balance("a"))).toEqual({ balanceMicros: 80n, heldMicros: 80n })
})

it("expires at once what a replica leaves open, whatever the number", async () => {
  const clock = fakeClock()
  const [leaving, living] = [fixture(clock), fixture(clock)]
  await run(Effect.andThen(leaving.replica.renew, living.replica.renew))
  await run(
    Effect.forEach(
      Array(60).fill("b"),
      (account: string) => leaving.billing.admit(callOf(account, 1000, 0n)),
      { concurrency: "unbounded", discard: true },
    ),
  )
  expect(await run(living.replica.sweep)).toBe(0)
  await run(leaving.replica.release)
  expect(await run(living.replica.sweep)).toBe(60)
})

it("expires a call whose own time is over, of a replica that lives; it may still settle late", async () => {
  const clock = fakeClock()
  const { billing, replica } = fixture(clock)
  await run(replica.renew)
  await run(billing.adjust(grant("c", 100n)))
  const [short, long] = [callOf("c", 2, 60n), callOf("c", 2, 40n)]
  await run(billing.admit({ ...short, expiresMs: clock.nowMs() + 1000 }))
  await run(billing.admit({ ...long, expiresMs: clock.nowMs() + 2000 }))
  clock.advance(999)
  expect(await run(replica.sweep)).toBe(0)
  clock.advance(1)
  expect(await run(replica.sweep)).toBe(1)
  expect(await run(billing.balance("c"))).toEqual({ balanceMicros: 100n, heldMicros: 40n })
  await run(billing.admit(callOf("c", 2, 10n)))
  await run(
    billing.settle([
      { id: short.id, outcome: "settled", costMicros: 60n, usage: {}, httpStatus: 200 },
    ]),
  )
  expect(await run(billing.balance("c"))).toEqual({ balanceMicros: 50n, heldMicros: 50n })
})

it("after an outage, the calls of replicas that live keep their holds until those could renew", async () => {
  const clock = fakeClock()
  const answers = { gone: false }
  const flaky: Database = {
    ...test.database,
    run: (query) =>
      Effect.suspend(() =>
        answers.gone
          ? Effect.fail(new PortError({ port: "database", message: "gone", why: "unavailable" }))
          : test.database.run(query),
      ),
  }
  const [first, second] = [fixture(clock, flaky), fixture(clock)]
  await run(Effect.andThen(first.replica.renew, second.replica.renew))
  await run(second.billing.adjust(grant("o", 100n)))
  const kept = callOf("o", 2, 60n)
  await run(second.billing.admit({ ...kept, expiresMs: clock.nowMs() + 60_000 }))
  answers.gone = true
  await run(Effect.flip(first.replica.renew))
  clock.advance(600_000)
  expect(await run(first.replica.sweep), "it can't renew its own lease").toBe(0)
  answers.gone = false
  await run(first.replica.renew)
  clock.advance(29_000)
  expect(await run(first.replica.sweep)).toBe(0)
  await run(second.replica.renew)
  await run(
    second.billing.settle([
      { id: kept.id, outcome: "settled", costMicros: 60n, usage: {}, httpStatus: 200 },
    ]),
  )
  expect(await run(second.billing.balance("o"))).toEqual({ balanceMicros: 40n, heldMicros: 0n })
  await run(second.billing.admit(callOf("o", 2, 10n)))
  await run(second.replica.release)
  clock.advance(1_000)
  await run(first.replica.renew)
  await run(first.replica.sweep)
  expect(await run(second.billing.balance("o")), "then they expire as ever").toEqual({
    balanceMicros: 40n,
    heldMicros: 0n,
  })
})
