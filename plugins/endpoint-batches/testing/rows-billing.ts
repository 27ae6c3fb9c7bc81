import { Effect, Semaphore } from "effect"
import { sql } from "kysely"
import type { Billing, Database, Refusal } from "../../../core/index.ts"
import { lineMicros } from "./target.ts"

/** A call and its state. */
export interface CallRow {
  readonly id: string
  readonly parent: string
  readonly request_id: string
  readonly state: "open" | "settled" | "voided" | "refused"
  readonly cost: bigint
}

/**
 * Billing in rows, so that it takes part in transactions. It has no rate limits; an account in
 * `broke` has no money, one in `maxHolds` has money for the holds of so many lines.
 */
export const rowsBilling = async (
  database: Database,
  broke: ReadonlySet<string>,
  maxHolds: ReadonlyMap<string, number>,
) => {
  await sql`CREATE TABLE test_call (id text PRIMARY KEY, parent text NOT NULL, request_id text NOT NULL, state text NOT NULL, cost bigint NOT NULL)`.execute(
    database.queries(),
  )
  const rate = { limit: 1, remaining: 1, resetMs: 0 }
  const balanceTooLow: Refusal = { _tag: "Refusal", reason: "balance", rate, retryAfterMs: 0 }
  const held = async () =>
    Number(
      (
        await sql<{
          many: string
        }>`SELECT count(*) AS many FROM test_call WHERE state = 'open'`.execute(database.queries())
      ).rows[0]?.many,
    )
  const oneAtATime = Semaphore.makeUnsafe(1).withPermits(1)
  const billing: Billing = {
    admit: ({ id, caller, requestId, parent, holdMicros, counts }) => {
      if (broke.has(caller.tenant.account) && holdMicros > 0n) return Effect.fail(balanceTooLow)
      if (counts === "peek") return Effect.succeed(rate)
      const most = maxHolds.get(caller.tenant.account)
      const hold = database.run(() =>
        sql`INSERT INTO test_call VALUES (${id}, ${parent ?? ""}, ${requestId}, 'open', 0)`.execute(
          database.queries(),
        ),
      )
      if (most === undefined) return Effect.as(hold, rate)
      const admitted = Effect.flatMap(
        database.run(held),
        (many): ReturnType<Billing["admit"]> =>
          many < most ? Effect.as(hold, rate) : Effect.fail(balanceTooLow),
      )
      return oneAtATime(admitted)
    },
    settle: (items, tx) => {
      const [ids, outcomes, costs] = [
        items.map(({ id }) => id),
        items.map(({ outcome }) => outcome),
        items.map(({ costMicros }) => String(costMicros)),
      ]
      const query = sql`
        UPDATE test_call c SET state = x.state, cost = x.cost FROM unnest(${ids}::text[], ${outcomes}::text[], ${costs}::bigint[]) AS x(id, state, cost)
        WHERE c.id = x.id AND c.state = 'open'`
      return Effect.asVoid(database.run(() => query.execute(database.queries(tx))))
    },
    voidChildren: (parent, tx) =>
      Effect.asVoid(
        database.run(() =>
          sql`UPDATE test_call SET state = 'voided' WHERE parent = ${parent} AND state = 'open'`.execute(
            database.queries(tx),
          ),
        ),
      ),
    balance: (account) =>
      Effect.sync(() => ({
        balanceMicros: broke.has(account)
          ? 0n
          : BigInt(maxHolds.get(account) ?? 1_000) * lineMicros,
        heldMicros: 0n,
      })),
    spentThisMonth: () => Effect.succeed(new Map()),
    adjust: () => Effect.void,
  }
  const calls = async () =>
    (await sql<CallRow>`SELECT * FROM test_call ORDER BY id`.execute(database.queries())).rows
  return { billing, calls }
}
