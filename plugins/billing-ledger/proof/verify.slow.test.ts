import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import fc from "fast-check"
import { type RawBuilder, sql } from "kysely"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import {
  type AdmitRequest,
  costOf,
  defaultLimits,
  type PriceTag,
  parsePrice,
  priceTag,
  type Settlement,
  type Usage,
  usageOf,
  uuidV7,
} from "../../../core/index.ts"
import { type FakeClock, fakeClock, fakeLog, fakeMetrics } from "../../../testing/index.ts"
import { openTestDatabase, type TestDatabase } from "../../../testing/postgres.ts"
import { type LedgerBilling, makeLedgerBilling } from "../ledger-billing.ts"
import { migrations } from "../migrations.ts"
import { makeReplica, type Replica } from "../replica.ts"
import { callInvariants } from "./calls.ts"
import { keyInvariants } from "./keys.ts"
import { transferInvariants } from "./transfers.ts"
import { verifyLedger } from "./verify.ts"

const run = Effect.runPromise
const prices = parsePrice({ input: 1500.000001, output: 6000.5, image: 25, searchUnit: 2.5 })

let test: TestDatabase
let clock: FakeClock
let billing: LedgerBilling
let replica: Replica
beforeAll(async () => {
  test = await openTestDatabase()
  await run(test.database.migrate("billing-ledger", migrations))
})
afterAll(() => test.close())

const query = async (text: RawBuilder<unknown>) =>
  (await run(test.database.run(() => text.execute(test.database.queries())))).rows
const verify = () =>
  run(
    verifyLedger(test.database, { now: new Date(clock.nowMs()), leaseMs: 30_000, sweepMs: 10_000 }),
  )

interface Ask {
  readonly account?: string
  readonly usage?: Usage
  readonly factor?: number
  readonly hold?: bigint
  readonly more?: Partial<AdmitRequest>
}
const admit = async ({ account = "acct_1", factor = 1, hold = 10_000_000n, more }: Ask = {}) => {
  const caller = {
    tenant: { account, mode: "live" as const },
    keyId: `${account}-key`,
    scopes: ["*"],
    role: "user" as const,
    limits: { ...defaultLimits, concurrency: 100, monthlyCapMicros: 0n },
  }
  const priced = {
    model: "m",
    prices: priceTag(() => prices, ["m"], factor),
    expiresMs: clock.nowMs() + 600_000,
  }
  const request: AdmitRequest = {
    id: uuidV7(clock.nowMs()),
    caller,
    endpoint: "chat.completions",
    requestId: "r",
    holdMicros: hold,
    counts: "all",
    ...priced,
    ...more,
  }
  await run(billing.admit(request))
  return request.id
}
const pay = async ({
  usage = usageOf({ inputTokens: 10, outputTokens: 3 }),
  factor = 1,
  hold = 10_000_000n,
  ...rest
}: Ask = {}) => {
  const id = await admit({ factor, hold, ...rest })
  const cost = costOf(() => prices, { m: usage }, factor)
  const settlement: Settlement = {
    id,
    outcome: "settled",
    costMicros: cost,
    usage: { m: usage },
    httpStatus: 200,
  }
  await run(billing.settle([settlement]))
  return id
}

/** Two accounts that were granted, charged and corrected, with one open call. */
const fill = async () => {
  clock = fakeClock()
  const id = randomUUID()
  const settings = { maxGathered: 128, maxInFlight: 2, maxWaiting: 1000 }
  billing = makeLedgerBilling({
    database: test.database,
    clock,
    log: fakeLog(),
    metrics: fakeMetrics(),
    settings,
    replica: id,
  })
  replica = makeReplica(test.database, clock, id, 30_000)
  await run(replica.beat)
  for (const account of ["acct_1", "acct_2"]) {
    await run(
      billing.adjust({
        id: `grant-${account}`,
        account,
        amountMicros: 50_000_000n,
        reason: "Free credit",
      }),
    )
    await pay({ account })
    await run(
      billing.adjust({ id: `fix-${account}`, account, amountMicros: -1_000n, reason: "fix" }),
    )
    await pay({ account, factor: 0.5 })
  }
  await admit()
}

beforeEach(async () => {
  await query(sql`ALTER TABLE ledger_transfer DISABLE TRIGGER ledger_transfer_append_only`)
  await query(
    sql`TRUNCATE ledger_account, ledger_key, ledger_call, ledger_usage, ledger_transfer, ledger_replica RESTART IDENTITY`,
  )
  await query(sql`ALTER TABLE ledger_transfer ENABLE TRIGGER ledger_transfer_append_only`)
  await fill()
})

it("is clean, and says on how many rows", async () => {
  const { checked, faults } = await verify()
  expect(faults).toEqual([])
  expect(checked.length).toBeGreaterThan(15)
  expect(checked.map(({ rows }) => rows).filter((rows) => rows === 0)).toEqual([])
})

it("prices usage as core/pricing.ts does, to the last micro-rupiah", async () => {
  await run(
    billing.adjust({
      id: randomUUID(),
      account: "acct_1",
      amountMicros: 10n ** 18n,
      reason: "test",
    }),
  )
  const count = fc.oneof(fc.nat(10), fc.nat(10_000_000))
  const part = fc.record({
    inputTokens: count,
    outputTokens: count,
    images: fc.nat(5),
    searchUnits: fc.nat(3),
  })
  const used = part.chain((some) =>
    fc
      .record({ cacheReadTokens: fc.nat(some.inputTokens) })
      .map((read) => usageOf({ ...some, ...read })),
  )
  const amount = fc.nat(10 ** 12).map((micros) => micros / 1e6)
  const price = fc
    .record({
      input: amount,
      output: amount,
      cacheWrite: amount,
      image: amount,
      searchUnit: amount,
    })
    .map(parsePrice)
  const call = fc.record({
    usage: fc.record({ m: used, n: used }),
    prices: fc.record({ m: price, n: price }),
    factor: fc.constantFrom(1, 0.5, 0.333),
  })
  await fc.assert(
    fc.asyncProperty(
      fc.array(call, { minLength: 10, maxLength: 30 }),
      fc.bigInt({ min: 1n, max: 10n ** 16n }),
      async (calls, hold) => {
        const items = calls.map(
          ({ usage, prices: own, factor }): Settlement & { readonly tag: PriceTag } => {
            const of = (model: string) => own[model as "m" | "n"]
            const costMicros = costOf(of, usage, factor)
            return {
              id: uuidV7(clock.nowMs()),
              outcome: "settled",
              costMicros,
              usage,
              httpStatus: 200,
              tag: priceTag(of, ["m", "n"], factor),
            }
          },
        )
        for (const { id, tag } of items)
          await admit({ hold, more: { id, prices: tag, counts: "money" } })
        await run(billing.settle(items))
        expect((await verify()).faults).toEqual([])
        await query(sql`UPDATE ledger_call SET prices = NULL`)
      },
    ),
    { numRuns: 10 },
  )
})

/** Breaks rows that the database itself would refuse to break. */
const forced = async (...changes: RawBuilder<unknown>[]) => {
  const checks = (await query(
    sql`SELECT conrelid::regclass::text AS t, conname AS c FROM pg_constraint WHERE contype = 'c' AND conrelid::regclass::text LIKE 'ledger\\_%'`,
  )) as {
    t: string
    c: string
  }[]
  const kept = (await query(
    sql`SELECT conrelid::regclass::text AS t, conname AS c, pg_get_constraintdef(oid) AS d FROM pg_constraint WHERE contype = 'c' AND conrelid::regclass::text LIKE 'ledger\\_%'`,
  )) as { t: string; c: string; d: string }[]
  for (const { t, c } of checks) await query(sql.raw(`ALTER TABLE ${t} DROP CONSTRAINT ${c}`))
  await query(sql`ALTER TABLE ledger_transfer DISABLE TRIGGER ledger_transfer_append_only`)
  for (const change of changes) await query(change)
  await query(sql`ALTER TABLE ledger_transfer ENABLE TRIGGER ledger_transfer_append_only`)
  return async () => {
    for (const { t, c, d } of kept)
      await query(sql.raw(`ALTER TABLE ${t} ADD CONSTRAINT ${c} ${d} NOT VALID`))
  }
}

const context = { now: new Date(0), leaseMs: 0, sweepMs: 0 }
const [twoLegs, zeroSum, balances, chain, covered, charges, appendOnly] = transferInvariants.map(
  ({ says }) => says,
)
const [held, withinHold, costs, tokens, hours, overdue] = callInvariants(context).map(
  ({ says }) => says,
)
const [slots, months, days, minutes] = keyInvariants(context).map(({ says }) => says)

const oneCharge = sql`(SELECT min(id) FROM ledger_transfer WHERE type = 'charge')`
const oneCall = sql`(SELECT min(id::text)::uuid FROM ledger_call WHERE state = 'settled')`
const openCall = sql`(SELECT id FROM ledger_call WHERE state = 'open')`

/** What is broken -> which invariants must say so, and no other; and what the fault names. */
const mutations: Readonly<
  Record<string, readonly [readonly RawBuilder<unknown>[], readonly (string | undefined)[], RegExp]>
> = {
  "a transfer between equal accounts": [
    [sql`UPDATE ledger_transfer SET credit_account = debit_account WHERE id = ${oneCharge}`],
    [twoLegs, balances, chain],
    /transfer 2 /,
  ],
  "a transfer of nothing": [
    [
      sql`INSERT INTO ledger_transfer (account_id, debit_account, credit_account, amount_micros, balance_micros, type, entry_id, at) SELECT 'acct_1', '@grants', 'acct_1', 0, balance_micros, 'grant', 'zero', last_at FROM ledger_account WHERE account_id = 'acct_1'`,
    ],
    [twoLegs],
    /transfer 9 .* 0 micros/,
  ],
  "a charge that pays the customer": [
    [
      sql`UPDATE ledger_transfer SET debit_account = '@grants', credit_account = account_id WHERE type = 'adjustment' AND account_id = 'acct_2'`,
    ],
    [twoLegs, balances, chain],
    /transfer 7 /,
  ],
  "a leg of an account that there is not": [
    [sql`UPDATE ledger_transfer SET credit_account = '@pocket' WHERE id = ${oneCharge}`],
    [zeroSum],
    /transfer 2 has a leg of @pocket/,
  ],
  "a balance that was raised": [
    [
      sql`UPDATE ledger_account SET balance_micros = balance_micros + 1 WHERE account_id = 'acct_1'`,
    ],
    [balances],
    /account acct_1/,
  ],
  "an account that vanished": [
    [sql`DELETE FROM ledger_account WHERE account_id = 'acct_2'`],
    [zeroSum, balances],
    /acct_2/,
  ],
  "a grant that was made up": [
    [
      sql`INSERT INTO ledger_transfer (account_id, debit_account, credit_account, amount_micros, balance_micros, type, entry_id, at) SELECT 'acct_1', '@grants', 'acct_1', 5, balance_micros + 5, 'grant', 'made-up', last_at FROM ledger_account WHERE account_id = 'acct_1'`,
    ],
    [balances],
    /account acct_1/,
  ],
  "a running balance that was altered": [
    [sql`UPDATE ledger_transfer SET balance_micros = balance_micros + 1 WHERE id = 1`],
    [chain],
    /transfer 1 /,
  ],
  "a row that was back-dated": [
    [sql`UPDATE ledger_transfer SET at = at - interval '1 day' WHERE id = 3`],
    [chain],
    /transfer 3 /,
  ],
  "a balance below its hold": [
    [sql`UPDATE ledger_account SET held_micros = balance_micros + 1 WHERE account_id = 'acct_2'`],
    [covered, held],
    /account acct_2/,
  ],
  "a charge that was deleted": [
    [
      sql`DELETE FROM ledger_transfer WHERE id = (SELECT max(id) FROM ledger_transfer WHERE account_id = 'acct_2')`,
    ],
    [balances, charges],
    /charges: 0/,
  ],
  "a charge for another call": [
    [sql`UPDATE ledger_transfer SET call_id = gen_random_uuid() WHERE id = ${oneCharge}`],
    [charges],
    /which owes nothing/,
  ],
  "a charge to another account's call": [
    [
      sql`UPDATE ledger_call SET account_id = 'acct_2' WHERE id = (SELECT call_id FROM ledger_transfer WHERE id = ${oneCharge})`,
    ],
    [charges, hours],
    /call .* of account acct_2/,
  ],
  "a trigger that is off": [[], [appendOnly], /ledger_transfer_append_only/],
  "a hold that was lowered": [
    [sql`UPDATE ledger_account SET held_micros = held_micros - 1 WHERE account_id = 'acct_1'`],
    [held],
    /account acct_1: held/,
  ],
  "a cost above the hold": [
    [sql`UPDATE ledger_call SET hold_micros = cost_micros - 1 WHERE id = ${oneCall}`],
    [withinHold, costs],
    /call /,
  ],
  "usage that was altered": [
    [sql`UPDATE ledger_call SET usage = jsonb_set(usage, '{m,images}', '1') WHERE id = ${oneCall}`],
    [costs],
    /call .* its usage comes to/,
  ],
  "prices that were altered": [
    [
      sql`UPDATE ledger_call SET prices = jsonb_set(prices::jsonb, '{models,m,input}', '"1700"')::json WHERE id = ${oneCall}`,
    ],
    [costs],
    /call /,
  ],
  "tokens that were altered": [
    [sql`UPDATE ledger_call SET input_tokens = 11 WHERE id = ${oneCall}`],
    [tokens, hours],
    /call .*: 11 and 3 tokens/,
  ],
  "an hour that was altered": [
    [sql`UPDATE ledger_usage SET errors = errors + 1 WHERE account_id = 'acct_2'`],
    [hours],
    /hour .* account acct_2/,
  ],
  "an hour that was deleted": [
    [sql`DELETE FROM ledger_usage WHERE account_id = 'acct_2'`],
    [hours],
    /acct_2/,
  ],
  "an hour without calls": [
    [
      sql`INSERT INTO ledger_usage VALUES ('acct_1', 'live', '2020-01-01', 'k', '', 'e', 1, 0, 0, 0, 0)`,
    ],
    [hours],
    /2020/,
  ],
  "a slot that leaked": [
    [sql`UPDATE ledger_key SET open_calls = open_calls + 1 WHERE key_id = 'acct_2-key'`],
    [slots],
    /key acct_2-key: 1 slots, 0/,
  ],
  "a month's spend that was forgotten": [
    [sql`UPDATE ledger_key SET spent_micros = 0 WHERE key_id = 'acct_2-key'`],
    [months],
    /key acct_2-key/,
  ],
  "a month's hold that leaked": [
    [sql`UPDATE ledger_key SET held_micros = held_micros + 1 WHERE key_id = 'acct_2-key'`],
    [months],
    /key acct_2-key/,
  ],
  "a day that was miscounted": [
    [sql`UPDATE ledger_key SET day_calls = 1 WHERE key_id = 'acct_2-key'`],
    [days],
    /key acct_2-key/,
  ],
  "a gap in the minute": [
    [sql`UPDATE ledger_call SET ordinal = NULL WHERE id = ${openCall}`],
    [minutes],
    /acct_1-key has ordinal 2, next is 4/,
  ],
  "an ordinal twice": [
    [sql`UPDATE ledger_call SET ordinal = 2 WHERE id = ${openCall}`],
    [minutes],
    /ordinal 2, next is 2/,
  ],
  "a call open beyond its time": [
    [
      sql`UPDATE ledger_call SET expires_at = admitted_at - interval '21 s' WHERE id = ${openCall}`,
      sql`UPDATE ledger_replica SET started_at = started_at - interval '1 hour'`,
    ],
    [overdue],
    /call .* is open since/,
  ],
  "a call whose replica is long dead": [
    [
      sql`UPDATE ledger_call SET replica_id = gen_random_uuid(), admitted_at = admitted_at - interval '51 s' WHERE id = ${openCall}`,
      sql`UPDATE ledger_replica SET started_at = started_at - interval '1 hour'`,
    ],
    [overdue, minutes],
    /call .* is open since/,
  ],
}

describe("finds, and names, exactly what is broken:", () => {
  it.each(Object.entries(mutations))("%s", async (name, [changes, expected, detail]) => {
    const repair = await forced(...changes)
    if (name === "a trigger that is off")
      await query(sql`ALTER TABLE ledger_transfer DISABLE TRIGGER ledger_transfer_append_only`)
    try {
      const { faults } = await verify()
      expect([...new Set(faults.map(({ invariant }) => invariant))].sort()).toEqual(
        expected.toSorted(),
      )
      expect(faults.map((fault) => fault.detail).join("\n")).toMatch(detail)
    } finally {
      await repair()
    }
  })
})
