import { randomUUID } from "node:crypto"
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, beforeAll } from "vitest"
import { type Database, PortError } from "../../core/index.ts"
import { billingContract } from "../../testing/contracts/billing.ts"
import { fakeClock, fakeLog, fakeMetrics } from "../../testing/index.ts"
import { openTestDatabase, type TestDatabase } from "../../testing/postgres.ts"
import { makeLedgerBilling } from "./ledger-billing.ts"
import { migrations } from "./migrations.ts"
import { makeSettlementJournal } from "./settlement-journal.ts"

let test: TestDatabase
beforeAll(async () => {
  test = await openTestDatabase()
  await Effect.runPromise(test.database.migrate("billing-ledger", migrations))
})
afterAll(() => test.close())

for (const [maxGathered, journalFirst, maxSpare] of [
  [128, false, 0],
  [1, false, 0],
  [128, true, 0],
  [128, false, 64],
  [128, true, 64],
] as const)
  billingContract(
    `ledger, ${maxGathered} a statement, the journal first: ${journalFirst}, ${maxSpare} spare calls`,
    async () => {
      const folder = await mkdtemp(join(tmpdir(), "rakit-journal-"))
      const replica = randomUUID()
      const journal = makeSettlementJournal(folder, replica)
      const clock = fakeClock()
      const settings = { maxGathered, maxInFlight: 2, maxWaiting: 1000, maxSpare }
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
        replica,
        journal,
        journalFirst,
      })
      const outage = {
        begin: () => {
          isGone = true
        },
        end: () => {
          isGone = false
          // what was on its way when the database came back is kept, too
          return Effect.runPromise(Effect.andThen(billing.drained, billing.kept.settleAll))
        },
      }
      const close = async () => {
        await Effect.runPromise(Effect.andThen(billing.idle, journal.close))
        await rm(folder, { recursive: true, force: true })
      }
      return { billing, clock, money: true, outage, close }
    },
  )
