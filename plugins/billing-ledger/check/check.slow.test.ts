import { randomUUID } from "node:crypto"
import { Effect, Stream } from "effect"
import { type RawBuilder, sql } from "kysely"
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest"
import type { Finding } from "../../../core/index.ts"
import { openTestDatabase, type TestDatabase } from "../../../testing/postgres.ts"
import { makeLedger } from "../ledger.ts"
import { makeReplica } from "../replica.ts"
import { openTestLedger, type TestLedger } from "../testing/ledger.ts"
import { ledgerCheck } from "./ledger-check.ts"
import { usageCheck } from "./usage-check.ts"

const run = Effect.runPromise
const times = { leaseMs: 30_000, sweepMs: 10_000 }
let test: TestDatabase
let ledger: TestLedger
beforeAll(async () => {
  test = await openTestDatabase()
  await openTestLedger(test)
})
beforeEach(async () => {
  await query(sql`ALTER TABLE ledger_transfer DISABLE TRIGGER ledger_transfer_append_only`)
  await query(
    sql`TRUNCATE ledger_account, ledger_key, ledger_call, ledger_usage, ledger_transfer, ledger_replica RESTART IDENTITY`,
  )
  await query(sql`ALTER TABLE ledger_transfer ENABLE TRIGGER ledger_transfer_append_only`)
  ledger = await openTestLedger(test)
  await ledger.grant(100_000_000_000n)
  await ledger.spend()
  await ledger.spend({ outcome: "voided", status: 500 })
  ledger.clock.advance(3_600_000)
  await ledger.spend({ model: "", key: "key_2", usage: {} })
})
afterAll(() => test?.close())

const query = async <R>(text: RawBuilder<R>) => (await text.execute(test.database.queries())).rows
const findings = async (looked: (things: number) => void = () => {}) => {
  const all: (Finding & { readonly check: string })[] = []
  for (const check of [ledgerCheck, usageCheck].map((make) =>
    make({ database: test.database, clock: ledger.clock, ...times }),
  ))
    for (const finding of await run(Stream.runCollect(check.findings(looked))))
      all.push({ ...finding, check: check.name })
  return all
}
const repairAll = async () => {
  for (const { repair } of await findings())
    for (let time = 0; repair && time < 2; time++) await run(repair)
}

it("finds nothing in a sound ledger, and says on how many rows", async () => {
  await ledger.admit()
  let looked = 0
  expect(
    await findings((things) => {
      looked += things
    }),
  ).toEqual([])
  expect(looked).toBeGreaterThan(20)
})

it("names what breaks an invariant; money is for a person to repair", async () => {
  await query(sql`UPDATE ledger_account SET balance_micros = balance_micros + 1`)
  const found = await findings()
  expect(found).toMatchObject([
    {
      check: "ledger",
      subject: expect.stringMatching(/^account acct_1: balance \d+, its legs come to \d+$/),
      problem: "against: each account's balance is the sum of its legs",
    },
  ])
  expect(found[0]?.repair).toBeUndefined()
})

it("gives back what a call that is over still holds", async () => {
  const id = await ledger.admit()
  const alive = makeReplica(test.database, ledger.clock, randomUUID(), times.leaseMs)
  await run(alive.renew)
  ledger.clock.advance(60_000)
  await run(alive.renew)
  const found = await findings()
  expect(found).toMatchObject([
    {
      check: "ledger",
      subject: expect.stringContaining(`call ${id} of account acct_1 is open since`),
      remedy: "it expires, and what it holds is free again",
    },
  ])
  await repairAll()
  expect([await findings(), await query(sql`SELECT held_micros FROM ledger_account`)]).toEqual([
    [],
    [{ held_micros: 0n }],
  ])
})

it.each([
  ["altered", sql`UPDATE ledger_usage SET errors = errors + 1, cost_micros = cost_micros - 1`, 2],
  ["deleted", sql`DELETE FROM ledger_usage`, 2],
  [
    "made up",
    sql`INSERT INTO ledger_usage VALUES ('acct_9', 'live', '2020-01-01', 'k', '', 'e', 1, 0, 0, 0, 0)`,
    1,
  ],
])("sums hours of usage again that were %s", async (_, change, hours) => {
  const rows = () => query(sql`SELECT * FROM ledger_usage ORDER BY account_id, hour, key_id`)
  const before = await rows()
  await query(change)
  const found = await findings()
  expect(found.map(({ check, remedy }) => [check, remedy])).toEqual(
    Array(hours).fill(["usage", "it is summed again"]),
  )
  await repairAll()
  expect([await findings(), await rows()]).toEqual([[], before])
})

it("sums an hour again to what it is, while calls end in it", async () => {
  await query(sql`UPDATE ledger_usage SET requests = requests + 5`)
  const repairing = findings().then((found) => Promise.all(found.map(({ repair }) => run(repair!))))
  await Promise.all([
    repairing,
    ...Array.from({ length: 50 }, () => ledger.spend({ usage: { inputTokens: 1 } })),
  ])
  expect(await findings()).toEqual([])
})

it("names tokens that are not those of the usage", async () => {
  await query(
    sql`UPDATE ledger_call SET input_tokens = input_tokens + 1 WHERE model = 'm' AND state = 'settled'`,
  )
  expect((await findings()).map(({ check, problem }) => [check, problem])).toEqual([
    ["usage", "against: the tokens of each call are those of its usage"],
    ["usage", expect.stringMatching(/^its usage is .*; its calls come to /)],
  ])
})

it("says what the calls of a parent come to", async () => {
  await query(sql`UPDATE ledger_call SET parent_id = 'batch_1' WHERE cost_micros > 0`)
  const open = await ledger.admit()
  await query(sql`UPDATE ledger_call SET parent_id = 'batch_2' WHERE id = ${open}`)
  const children = await run(
    makeLedger(test.database, ledger.clock, times).children(["batch_1", "batch_2", "batch_3"]),
  )
  expect([...children]).toEqual(
    expect.arrayContaining([
      ["batch_1", { open: 0, costMicros: 4_000_000n }],
      ["batch_2", { open: 1, costMicros: 0n }],
    ]),
  )
  expect(children.size).toBe(2)
})
