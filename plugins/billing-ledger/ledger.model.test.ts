import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import fc from "fast-check"
import { sql } from "kysely"
import { afterAll, beforeAll, expect, test } from "vitest"
import { runSchedule, scheduleArbitrary } from "../../core/testing/billing-schedule.ts"
import { fakeClock, fakeLog, fakeMetrics } from "../../core/testing/index.ts"
import { openTestDatabase, type TestDatabase } from "../../runtime/testing/test-database.ts"
import { makeLedgerBilling } from "./ledger-billing.ts"
import { migrations } from "./migrations.ts"
import { makeReplica } from "./replica.ts"

let db: TestDatabase
beforeAll(async () => {
  db = await openTestDatabase()
  await Effect.runPromise(db.database.migrate("billing-ledger", migrations))
})
afterAll(() => db.close())

const rowsOf = async (query: ReturnType<typeof sql>) => (await Effect.runPromise(db.database.run(() => query.execute(db.database.queries())))).rows

/** Every sum that is kept, made again from the rows it stands for: what differs. */
const differences = async () => ({
  balances: await rowsOf(sql`
    SELECT a.account_id FROM ledger_account a WHERE a.balance_micros <> (SELECT coalesce(sum(CASE WHEN t.credit_account = a.account_id THEN t.amount_micros ELSE -t.amount_micros END), 0) FROM ledger_transfer t WHERE t.account_id = a.account_id)
      OR a.held_micros <> (SELECT coalesce(sum(c.hold_micros), 0) FROM ledger_call c WHERE c.account_id = a.account_id AND c.state = 'open')`),
  running: await rowsOf(sql`
    SELECT id FROM (SELECT id, balance_micros, sum(CASE WHEN credit_account = account_id THEN amount_micros ELSE -amount_micros END) OVER (PARTITION BY account_id ORDER BY id) AS again FROM ledger_transfer) t
      WHERE balance_micros <> again`),
  charges: await rowsOf(sql`
    SELECT c.id FROM ledger_call c LEFT JOIN ledger_transfer t ON t.call_id = c.id WHERE c.cost_micros <> coalesce(t.amount_micros, 0) OR c.cost_micros > c.hold_micros`),
  keys: await rowsOf(sql`
    SELECT k.key_id FROM ledger_key k WHERE k.open_calls <> (SELECT count(*) FROM ledger_call c WHERE c.key_id = k.key_id AND c.counts = 'all' AND c.state = 'open')
      OR k.day_calls <> (SELECT count(*) FROM ledger_call c WHERE c.key_id = k.key_id AND c.counts = 'all' AND c.state <> 'refused' AND (c.admitted_at AT TIME ZONE 'UTC')::date = k.day)`),
  months: await rowsOf(sql`
    SELECT k.key_id FROM ledger_key k JOIN (SELECT key_id, ledger_month(admitted_at) AS month, sum(cost_micros) AS spent, sum(hold_micros) FILTER (WHERE state = 'open') AS held
        FROM ledger_call GROUP BY 1, 2) c USING (key_id, month) WHERE k.spent_micros <> c.spent OR k.held_micros <> coalesce(c.held, 0)`),
})
const none = { balances: [], running: [], charges: [], keys: [], months: [] }

interface UsageTableRow {
  readonly account_id: string
  readonly mode: string
  readonly hour: Date
  readonly key_id: string
  readonly model: string
  readonly endpoint: string
  readonly requests: bigint
  readonly errors: bigint
  readonly input_tokens: bigint
  readonly output_tokens: bigint
  readonly cost_micros: bigint
}

const usageOfAccounts = async (accounts: readonly string[]) => {
  const rows = (await rowsOf(sql`SELECT * FROM ledger_usage WHERE account_id = ANY(${accounts})`)) as unknown as readonly UsageTableRow[]
  const read = rows.map(({ account_id, mode, hour, key_id, model, endpoint, ...sums }) => ({
    group: JSON.stringify({ account: account_id, mode, hour: hour.getTime(), key: key_id, model, endpoint }),
    sums,
  }))
  return read
    .sort((a, b) => (a.group < b.group ? -1 : 1))
    .map(({ group, sums }) => ({
      ...JSON.parse(group),
      requests: Number(sums.requests),
      errors: Number(sums.errors),
      inputTokens: Number(sums.input_tokens),
      outputTokens: Number(sums.output_tokens),
      costMicros: sums.cost_micros,
    }))
}

test.each([
  [128, 2, 20],
  [1, 4, 10],
])("does what the exact model does, %i a statement", async (maxGathered, maxInFlight, numRuns) => {
  await fc.assert(
    fc.asyncProperty(scheduleArbitrary, async (steps) => {
      const clock = fakeClock()
      const settings = { maxGathered, maxInFlight, maxWaiting: 1000 }
      const replica = randomUUID()
      const billing = makeLedgerBilling({ database: db.database, clock, log: fakeLog(), metrics: fakeMetrics(), settings, replica })
      // without a heartbeat the replica counts as dead
      const { beat, sweep, leave } = makeReplica(db.database, clock, replica, 30_000)
      const expireOpen = () => Effect.runPromise(Effect.asVoid(sweep))
      const expireDue = () => Effect.runPromise(Effect.asVoid(Effect.all([beat, sweep, leave])))
      const seen = await runSchedule(steps, { billing, clock, money: true, expireOpen, expireDue, usage: usageOfAccounts })
      for (const { step, expected, actual } of seen) expect({ step, seen: actual }).toEqual({ step, seen: expected })
    }),
    { numRuns },
  )
  expect(await differences()).toEqual(none)
})
