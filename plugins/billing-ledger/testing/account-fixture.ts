import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { afterAll, beforeAll, beforeEach } from "vitest"
import type { Database } from "../../../core/index.ts"
import { type FakeClock, fakeClock } from "../../../testing/index.ts"
import { openTestDatabase, type TestDatabase } from "../../../testing/postgres.ts"
import type { LedgerBilling } from "../ledger-billing.ts"
import { migrations } from "../migrations.ts"
import { plainCall, plainLedger } from "./plain-ledger.ts"

/** The database of a file's tests; clock, ledger and account are new in each of them. */
export let test: TestDatabase
export let clock: FakeClock
export let ledger: LedgerBilling
export let account: string

export const ledgerOn = (database: Database) => plainLedger(database, clock)

export const useAccountFixture = () => {
  beforeAll(async () => {
    test = await openTestDatabase()
    await Effect.runPromise(test.database.migrate("billing-ledger", migrations))
  })
  afterAll(() => test.close())
  beforeEach(() => {
    clock = fakeClock()
    ledger = ledgerOn(test.database)
    account = `acc-${randomUUID()}`
  })
}

export const run = Effect.runPromise
export const call = (holdMicros?: bigint, id?: string) => plainCall(account, clock, holdMicros, id)
export const admit = async (request = call()) => {
  await run(ledger.admit(request))
  return request.id
}
export const grant = (amountMicros: bigint) =>
  ledger.adjust({ id: randomUUID(), account, amountMicros, reason: "test" })
