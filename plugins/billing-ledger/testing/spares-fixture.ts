import { Effect } from "effect"
import { sql } from "kysely"
import type { AdmitRequest, Database, Limits } from "../../../core/index.ts"
import type { LedgerBilling } from "../ledger-billing.ts"
import { verifyLedger } from "../proof/verify.ts"
import { account, call, clock, run, test } from "./account-fixture.ts"
import { plainLedger, withLimits } from "./plain-ledger.ts"

/** A server that admits calls ahead, with one statement at once, as by default. */
export const spareLedger = (database: Database = test.database) =>
  plainLedger(database, clock, { maxSpare: 64, maxInFlight: 1 })

export const query = async <Row>(text: ReturnType<typeof sql<Row>>) =>
  (await run(test.database.run(() => text.execute(test.database.queries())))).rows

export interface Row {
  readonly id: string
  readonly counts: string
  readonly state: string
  readonly hold_micros: bigint
  readonly cost_micros: bigint
  readonly ordinal: bigint
}
export const rows = (counts: string) =>
  query(
    sql<Row>`SELECT id, counts, state, hold_micros, cost_micros, ordinal FROM ledger_call WHERE account_id = ${account} AND counts = ${counts} ORDER BY ordinal, id`,
  )
export const faults = async () => {
  const now = new Date(clock.nowMs())
  return (await run(verifyLedger(test.database, { now, leaseMs: 30_000, sweepMs: 10_000 }))).faults
}

export const limited = (holdMicros: bigint, limits: Partial<Limits> = {}): AdmitRequest =>
  withLimits(call(holdMicros), limits)
export const reasonOf = (request: AdmitRequest, billing: LedgerBilling) =>
  run(
    billing.admit(request).pipe(
      Effect.as("admitted"),
      Effect.catchTag("Refusal", ({ reason }) => Effect.succeed(reason)),
    ),
  )
