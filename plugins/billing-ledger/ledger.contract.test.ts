import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { afterAll, beforeAll } from "vitest"
import { type Database, PortError } from "../../core/index.ts"
import { billingContract } from "../../testing/contracts/billing.ts"
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

for (const maxGathered of [128, 1])
  billingContract(`ledger, ${maxGathered} a statement`, async () => {
    const clock = fakeClock()
    const settings = { maxGathered, maxInFlight: 2, maxWaiting: 1000 }
    let isGone = false
    const gone = new PortError({ port: "database", message: "gone", why: "unavailable" })
    const database: Database = {
      ...test.database,
      run: (query) => (isGone ? Effect.fail(gone) : test.database.run(query)),
    }
    const billing = makeLedgerBilling({
      database,
      clock,
      log: fakeLog(),
      metrics: fakeMetrics(),
      settings,
      replica: randomUUID(),
    })
    const outage = {
      begin: () => {
        isGone = true
      },
      end: () => {
        isGone = false
        return Effect.runPromise(billing.kept.settleAll)
      },
    }
    return { billing, clock, money: true, outage, close: async () => {} }
  })
