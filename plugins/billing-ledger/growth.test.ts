import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { sql } from "kysely"
import { afterAll, beforeAll, expect, it } from "vitest"
import { type Database, defaultLimits, uuidV7 } from "../../core/index.ts"
import { fakeClock, fakeLog, fakeMetrics } from "../../testing/index.ts"
import { openTestDatabase, type TestDatabase } from "../../testing/postgres.ts"
import { makeLedgerBilling } from "./ledger-billing.ts"
import { migrations } from "./migrations.ts"

let test: TestDatabase
beforeAll(async () => {
  test = await openTestDatabase()
  await Effect.runPromise(test.database.migrate("billing-ledger", migrations))
})
afterAll(() => test.close())

const calls = 300
const limits = { ...defaultLimits, rpm: 1_000_000, rpd: 1_000_000 }

/**
 * Reads on the one connection, whose plans were made while there were no calls; statistics of the
 * calls before are flushed first.
 */
const entriesRead = async (database: Database): Promise<number> => {
  const run = <Row>(text: ReturnType<typeof sql<Row>>) =>
    Effect.runPromise(database.run(() => text.execute(database.queries())))
  await run(sql`SELECT pg_stat_force_next_flush()`)
  const { rows } = await run(
    sql<{
      n: string
    }>`SELECT sum(idx_tup_read)::text AS n FROM pg_stat_user_indexes WHERE relname = 'ledger_call'`,
  )
  return Number(rows[0]?.n)
}

it("a call reads as few rows after hundreds in its minute, and beside open ones, as the first did", async () => {
  const { database } = test
  const clock = fakeClock()
  const settings = { maxGathered: 128, maxInFlight: 1, maxWaiting: 1000 }
  const ledger = makeLedgerBilling({
    database,
    clock,
    log: fakeLog(),
    metrics: fakeMetrics(),
    settings,
    replica: randomUUID(),
  })
  await Effect.runPromise(
    ledger.adjust({ id: "grant", account: "a", amountMicros: 10n ** 12n, reason: "test" }),
  )
  const admit = async (keyId: string) => {
    const id = uuidV7(clock.nowMs())
    const caller = {
      tenant: { account: "a", mode: "live" as const },
      keyId,
      scopes: ["*"],
      role: "user" as const,
      limits,
    }
    await Effect.runPromise(
      ledger.admit({
        id,
        caller,
        endpoint: "chat.completions",
        requestId: "r",
        holdMicros: 1000n,
        counts: "all",
      }),
    )
    return id
  }
  for (let i = 0; i < calls; i++) {
    await Effect.runPromise(
      ledger.settle([
        { id: await admit("k"), outcome: "settled", costMicros: 500n, usage: {}, httpStatus: 200 },
      ]),
    )
    await admit(`open-${i}`)
    clock.advance(10)
  }
  expect((await entriesRead(database)) / calls).toBeLessThan(20)
})
