import { randomUUID } from "node:crypto"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { sql } from "kysely"
import { afterEach, beforeEach, expect, it } from "vitest"
import { type AdmitRequest, type Database, type Limits, PortError } from "../../core/index.ts"
import type { LedgerBilling } from "./ledger-billing.ts"
import { makeReplica } from "./replica.ts"
import { makeSettlementJournal } from "./settlement-journal.ts"
import { account, clock, grant, run, test, useAccountFixture } from "./testing/account-fixture.ts"
import { plainLedger, settlementOf } from "./testing/plain-ledger.ts"
import {
  faults,
  limited,
  query,
  type Row,
  reasonOf as reasonIn,
  rows,
  spareLedger,
} from "./testing/spares-fixture.ts"

useAccountFixture()

let ledger: LedgerBilling
beforeEach(() => {
  ledger = spareLedger()
})
afterEach(() => run(ledger.idle))

const admitWith = async (billing: LedgerBilling, request: AdmitRequest) => {
  await run(billing.admit(request))
  return request.id
}

/** Four calls at once make a key busy; when the last one is admitted, so are spare calls. */
const makeBusy = async (holdMicros = 0n, limits: Partial<Limits> = {}) => {
  for (let i = 0; i < 4; i++) await admitWith(ledger, limited(holdMicros, limits))
}
const reasonOf = (request: AdmitRequest, billing = ledger) => reasonIn(request, billing)

it("settles a call as if it had been admitted with its own request", async () => {
  await run(grant(1_000n))
  await makeBusy(5n)
  const spare = await rows("spare")
  expect(spare.map(({ hold_micros }) => hold_micros)).toEqual(Array(4).fill(8n))
  const request = { ...limited(5n), endpoint: "embeddings", requestId: "mine", model: "m" }
  await admitWith(ledger, request)
  expect(await rows("spare"), "the database is not asked").toEqual(spare)
  const item = { ...settlementOf(request.id, "settled", 7n), usage: {} }
  await run(ledger.settle([item]))
  await run(ledger.settle([item]))
  const [settled] = await query(
    sql`SELECT state, counts, hold_micros, cost_micros, endpoint, request_id, model FROM ledger_call WHERE id = ${request.id}`,
  )
  expect(settled).toEqual({
    ...{ state: "settled", counts: "all", hold_micros: 5n, cost_micros: 5n },
    ...{ endpoint: "embeddings", request_id: "mine", model: "m" },
  })
  expect(await run(ledger.balance(account))).toEqual({
    balanceMicros: 995n,
    heldMicros: 4n * 5n + 3n * 8n,
  })
  expect(await faults()).toEqual([])
})

it.each([
  ["voided", 59 - 4],
  ["refused", 60 - 4],
] as const)("a call that used one may be %s", async (outcome, remaining) => {
  await run(grant(1_000n))
  await makeBusy(5n)
  const id = await admitWith(ledger, limited(5n))
  await run(ledger.settle([settlementOf(id, outcome, 3n)]))
  expect((await rows("all")).find((row) => row.id === id)).toMatchObject({ state: outcome })
  await run(ledger.idle)
  expect((await run(ledger.admit({ ...limited(0n), counts: "peek" }))).remaining).toBe(remaining)
  expect(await run(ledger.balance(account))).toEqual({ balanceMicros: 1_000n, heldMicros: 20n })
  expect(await faults()).toEqual([])
})

it("what is not used leaves nothing behind", async () => {
  await run(grant(1_000n))
  await makeBusy(5n)
  expect(await rows("spare")).toHaveLength(4)
  await run(ledger.idle)
  expect(await rows("spare")).toEqual([])
  expect(await rows("all")).toHaveLength(4)
  expect(await run(ledger.balance(account))).toEqual({ balanceMicros: 1_000n, heldMicros: 20n })
  expect((await run(ledger.admit({ ...limited(0n), counts: "peek" }))).remaining).toBe(56)
  expect(await faults()).toEqual([])
})

it.each([
  ["rpm", { rpm: 10 }, 0n, 10, 2],
  ["rpd", { rpd: 10 }, 0n, 10, 2],
  ["concurrency", { concurrency: 10 }, 0n, 10, 2],
  ["monthly_cap", { monthlyCapMicros: 40n }, 4n, 10, 2],
  ["balance", {}, 8n, 12, 3],
] as const)(
  "takes half of what is left by %s at most, and a key gets all of it",
  async (reason, limits, hold, calls, spares) => {
    await run(grant(100n))
    await makeBusy(hold, limits)
    expect(await rows("spare")).toHaveLength(spares)
    for (let i = 4; i < calls; i++) expect(await reasonOf(limited(hold, limits))).toBe("admitted")
    expect(await reasonOf(limited(hold, limits))).toBe(reason)
    expect(await rows("spare"), "those that calls in flight use").toHaveLength(spares)
  },
)

it("gives all parallel calls what it gives back before they are refused", async () => {
  await run(grant(200n))
  await makeBusy(16n)
  expect(await rows("spare")).toHaveLength(3)
  const reasons = await Promise.all(Array.from({ length: 10 }, () => reasonOf(limited(40n))))
  expect(reasons.filter((reason) => reason === "admitted")).toHaveLength(3)
  expect(await run(ledger.balance(account))).toEqual({ balanceMicros: 200n, heldMicros: 184n })
})

it("gives way to another key of the account that needs its balance", async () => {
  await run(grant(100n))
  await makeBusy(8n)
  expect(await rows("spare")).toHaveLength(3)
  const { caller, ...request } = limited(60n)
  const other = { ...request, caller: { ...caller, keyId: `${account}-other` } }
  const reasons = await Promise.all([reasonOf(other), reasonOf(limited(8n))])
  expect(reasons).toEqual(["admitted", "admitted"])
})

it("leaves none behind that was asked for when it stops", async () => {
  for (let i = 0; i < 3; i++) await admitWith(ledger, limited(0n))
  const last = admitWith(ledger, limited(0n))
  await run(Effect.andThen(Effect.yieldNow, ledger.idle))
  await last
  expect(await rows("all")).toHaveLength(4)
  expect(await rows("spare")).toEqual([])
})

it("remembers a call for a minute after it could have begun", async () => {
  await makeBusy(0n, { rpm: 20 })
  clock.advance(249)
  for (let i = 0; i < 4; i++) await admitWith(ledger, limited(0n, { rpm: 20 }))
  await run(ledger.idle)
  const remaining = async () =>
    (await run(ledger.admit({ ...limited(0n, { rpm: 20 }), counts: "peek" }))).remaining
  clock.advance(60_000 - 249)
  expect(await remaining()).toBe(12)
  clock.advance(249)
  expect(await remaining()).toBe(12)
  clock.advance(1)
  expect(await remaining()).toBe(20)
})

/** As a crash of the database leaves it: one spare call less, and nothing counts it. */
const lose = async ({ id, ordinal, hold_micros }: Row) => {
  await query(
    sql`WITH c AS (DELETE FROM ledger_call WHERE id = ${id}), k AS (UPDATE ledger_key SET calls = calls - 1, day_calls = day_calls - 1, open_calls = open_calls - 1, held_micros = held_micros - ${hold_micros}::bigint WHERE key_id = ${limited(0n).caller.keyId}) UPDATE ledger_account SET held_micros = held_micros - ${hold_micros}::bigint WHERE account_id = ${account}`,
  )
  await query(
    sql`UPDATE ledger_call SET ordinal = ordinal - 1 WHERE ordinal > ${ordinal} AND account_id = ${account}`,
  )
}

it("charges a call whose spare call the database has lost in a crash", async () => {
  await run(grant(1_000n))
  await makeBusy(5n)
  const id = await admitWith(ledger, limited(5n))
  await lose((await rows("spare"))[0]!)
  await run(ledger.settle([settlementOf(id, "settled", 4n)]))
  expect((await rows("all")).find((row) => row.id === id)).toMatchObject({
    ...{ state: "settled", hold_micros: 4n, cost_micros: 4n },
  })
  await run(ledger.idle)
  expect(await run(ledger.balance(account))).toEqual({ balanceMicros: 996n, heldMicros: 20n })
  expect(await faults()).toEqual([])
})

it("charges it also where the database goes away while it is admitted again", async () => {
  let leftToSucceed = Number.POSITIVE_INFINITY
  const database: Database = {
    ...test.database,
    run: (work) =>
      leftToSucceed-- > 0
        ? test.database.run(work)
        : Effect.fail(new PortError({ port: "database", message: "gone", why: "unavailable" })),
  }
  ledger = spareLedger(database)
  await run(grant(1_000n))
  await makeBusy(5n)
  const id = await admitWith(ledger, limited(5n))
  await lose((await rows("spare"))[0]!)
  // the settlement that finds no call, the question which are missing, and the admission
  leftToSucceed = 3
  await run(ledger.settle([settlementOf(id, "settled", 4n)]))
  expect((await rows("all")).find((row) => row.id === id)).toMatchObject({ state: "open" })
  leftToSucceed = Number.POSITIVE_INFINITY
  await run(ledger.kept.settleAll)
  expect((await rows("all")).find((row) => row.id === id)).toMatchObject({
    ...{ state: "settled", hold_micros: 4n, cost_micros: 4n },
  })
  await run(ledger.idle)
  expect(await faults()).toEqual([])
})

it("what a killed server has kept is charged by the next one, and its spare calls are swept", async () => {
  const folder = await mkdtemp(join(tmpdir(), "rakit-journal-"))
  const [killed, next] = [randomUUID(), randomUUID()]
  let isGone = false
  const database: Database = {
    ...test.database,
    run: (work) =>
      isGone
        ? Effect.fail(new PortError({ port: "database", message: "gone", why: "unavailable" }))
        : test.database.run(work),
  }
  const journal = makeSettlementJournal(folder, killed)
  ledger = plainLedger(database, clock, { journal, maxSpare: 64, maxInFlight: 1 }, killed)
  await run(grant(1_000n))
  await makeBusy(5n)
  const id = await admitWith(ledger, limited(5n))
  isGone = true
  await run(ledger.settle([settlementOf(id, "settled", 4n)]))

  const other = makeSettlementJournal(folder, next)
  const heir = plainLedger(test.database, clock, { journal: other }, next)
  const replica = makeReplica(test.database, clock, next, 30_000)
  await run(replica.renew)
  await run(
    Effect.andThen(
      heir.kept.adopt(() => false),
      heir.kept.settleAll,
    ),
  )
  expect((await rows("all")).find((row) => row.id === id)).toMatchObject({
    ...{ state: "settled", hold_micros: 5n, cost_micros: 4n },
  })
  clock.advance(30_000)
  await run(replica.renew)
  await run(replica.sweep)
  expect((await rows("spare")).map(({ state }) => state)).toEqual(Array(3).fill("expired"))
  expect(await run(heir.balance(account))).toEqual({ balanceMicros: 996n, heldMicros: 0n })
  expect((await rows("all")).filter(({ state }) => state === "expired")).toHaveLength(4)
  expect(await faults()).toEqual([])
  await run(Effect.all([journal.close, other.close]))
  await rm(folder, { recursive: true, force: true })
})
