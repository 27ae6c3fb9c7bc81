import { Effect } from "effect"
import { sql } from "kysely"
import type { Billing, Database, Micros, Refusal } from "../../../core/index.ts"

/** A call and its state. */
export interface CallRow {
  readonly id: string
  readonly parent: string
  readonly state: "open" | "settled" | "voided" | "refused"
  readonly hold: bigint
  readonly cost: bigint
  readonly tokens: number
}

const rate = { limit: 1, remaining: 1, resetMs: 0 }
const balanceTooLow: Refusal = { _tag: "Refusal", reason: "balance", rate, retryAfterMs: 0 }

/**
 * Billing in rows, so that it takes part in transactions. `balance` says what the account has, and
 * what other calls hold of it.
 */
export const rowsBilling = async (
  database: Database,
  balance: () => { readonly balanceMicros: Micros; readonly heldMicros: Micros },
) => {
  await sql`
    CREATE TABLE IF NOT EXISTS test_call (id text PRIMARY KEY, parent text NOT NULL, state text NOT NULL, hold bigint NOT NULL, cost bigint NOT NULL, tokens int NOT NULL)`.execute(
    database.queries(),
  )
  await sql`DELETE FROM test_call`.execute(database.queries())
  const billing: Billing = {
    admit: ({ id, parent = "", holdMicros, counts }) => {
      const { balanceMicros, heldMicros } = balance()
      if (holdMicros > balanceMicros - heldMicros) return Effect.fail(balanceTooLow)
      if (counts === "peek") return Effect.succeed(rate)
      const hold = sql`INSERT INTO test_call VALUES (${id}, ${parent}, 'open', ${holdMicros}, 0, 0)`
      return Effect.as(
        database.run(() => hold.execute(database.queries())),
        rate,
      )
    },
    settle: (items, tx) =>
      Effect.forEach(
        items,
        ({ id, outcome, costMicros, usage }) =>
          database.run(() =>
            sql`
              UPDATE test_call SET state = ${outcome}, cost = ${costMicros}, tokens = ${Object.values(usage)[0]?.inputTokens ?? 0}
              WHERE id = ${id} AND state = 'open'`.execute(database.queries(tx)),
          ),
        { discard: true },
      ),
    voidChildren: (parent, tx) =>
      Effect.asVoid(
        database.run(() =>
          sql`UPDATE test_call SET state = 'voided' WHERE parent = ${parent} AND state = 'open'`.execute(
            database.queries(tx),
          ),
        ),
      ),
    balance: () => Effect.sync(balance),
    spentThisMonth: () => Effect.succeed(new Map()),
    adjust: () => Effect.void,
  }
  const calls = async () =>
    (await sql<CallRow>`SELECT * FROM test_call ORDER BY id`.execute(database.queries())).rows
  return { billing, calls }
}
