import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import fc from "fast-check"
import { sql } from "kysely"
import { afterAll, beforeAll, expect, test } from "vitest"
import { runSchedule, scheduleArbitrary } from "../../testing/contracts/billing/schedule.ts"
import { type FakeClock, fakeClock, fakeLog, fakeMetrics } from "../../testing/index.ts"
import { openTestDatabase, type TestDatabase } from "../../testing/postgres.ts"
import { makeLedgerBilling } from "./ledger-billing.ts"
import { migrations } from "./migrations.ts"
import { verifyLedger } from "./proof/verify.ts"
import { makeReplica } from "./replica.ts"

let db: TestDatabase
beforeAll(async () => {
  db = await openTestDatabase()
  await Effect.runPromise(db.database.migrate("billing-ledger", migrations))
})
afterAll(() => db.close())

const rowsOf = async (query: ReturnType<typeof sql>) =>
  (await Effect.runPromise(db.database.run(() => query.execute(db.database.queries())))).rows

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
  const rows = (await rowsOf(
    sql`SELECT * FROM ledger_usage WHERE account_id = ANY(${accounts})`,
  )) as unknown as readonly UsageTableRow[]
  const read = rows.map(({ account_id, mode, hour, key_id, model, endpoint, ...sums }) => ({
    group: JSON.stringify({
      account: account_id,
      mode,
      hour: hour.getTime(),
      key: key_id,
      model,
      endpoint,
    }),
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

/**
 * Each schedule begins in the middle of a month and after the previous ones: they share the tables,
 * where time never goes back.
 */
let latestMs = Date.UTC(2025, 11, 15, 12)
const nextMonth = (): FakeClock =>
  fakeClock(
    Date.UTC(new Date(latestMs).getUTCFullYear(), new Date(latestMs).getUTCMonth() + 1, 15, 12),
  )

test.each([
  [128, 2, 20],
  [1, 4, 10],
])("does what the exact model does, %i a statement", async (maxGathered, maxInFlight, numRuns) => {
  await fc.assert(
    fc.asyncProperty(scheduleArbitrary, async (steps) => {
      const clock = nextMonth()
      const settings = { maxGathered, maxInFlight, maxWaiting: 1000 }
      const replica = randomUUID()
      const billing = makeLedgerBilling({
        database: db.database,
        clock,
        log: fakeLog(),
        metrics: fakeMetrics(),
        settings,
        replica,
      })
      // without a heartbeat the replica counts as dead
      const { renew, sweep, release } = makeReplica(db.database, clock, replica, 30_000)
      // it renews from the start: a replica that begins later leaves for a while what ended before
      await Effect.runPromise(Effect.all([renew, release]))
      const expireOpen = () => Effect.runPromise(Effect.asVoid(sweep))
      const expireDue = () => Effect.runPromise(Effect.asVoid(Effect.all([renew, sweep, release])))
      const seen = await runSchedule(steps, {
        billing,
        clock,
        money: true,
        expireOpen,
        expireDue,
        usage: usageOfAccounts,
      })
      for (const { step, expected, actual } of seen)
        expect({ step, seen: actual }).toEqual({ step, seen: expected })
      latestMs = clock.nowMs()
      const { faults } = await Effect.runPromise(
        verifyLedger(db.database, {
          now: new Date(clock.nowMs()),
          leaseMs: 30_000,
          sweepMs: 10_000,
        }),
      )
      expect(faults).toEqual([])
    }),
    { numRuns },
  )
})
