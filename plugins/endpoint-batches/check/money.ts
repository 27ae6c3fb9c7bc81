import { Effect } from "effect"
import { type ChildCalls, type Finding, formatRupiah, type PortError } from "../../../core/index.ts"
import type { BatchRow, BatchTables } from "../tables.ts"
import { type CheckDeps, type CheckedBatch, subjectOf } from "./checked-batch.ts"

/** How long a line may still run that began before its batch ended. */
const inFlightMs = 3_600_000

const costNow = ({ database }: CheckDeps, id: string) =>
  database.run(() =>
    database
      .queries<BatchTables>()
      .selectFrom("batches_batch")
      .select(["cost_micros", "ended_at"])
      .where("id", "=", id)
      .executeTakeFirst(),
  )

const setCost = (
  { database }: CheckDeps,
  { id, cost_micros }: Pick<BatchRow, "id" | "cost_micros">,
  costMicros: bigint,
): Effect.Effect<void, PortError> =>
  Effect.asVoid(
    database.run(() =>
      database
        .queries<BatchTables>()
        .updateTable("batches_batch")
        .set({ cost_micros: costMicros })
        .where("id", "=", id)
        .where("cost_micros", "=", cost_micros)
        .execute(),
    ),
  )

/**
 * Costs only rise, those of row and ledger in one transaction: so the ledger's cost is between
 * those of two reads of the row.
 */
const checkCost = (
  deps: CheckDeps,
  row: CheckedBatch,
  { costMicros }: ChildCalls,
): Effect.Effect<readonly Finding[], PortError> =>
  Effect.gen(function* () {
    if (costMicros === row.cost_micros) return []
    const now = yield* costNow(deps, row.id)
    if (!now || (row.cost_micros <= costMicros && costMicros <= now.cost_micros)) return []
    const problem = `it says that its lines cost Rp${formatRupiah(row.cost_micros)}; the ledger says Rp${formatRupiah(costMicros)}`
    const finding = { subject: subjectOf(row), problem }
    return [
      now.ended_at === null
        ? finding
        : {
            ...finding,
            remedy: "it says what the ledger says",
            repair: setCost(deps, { id: row.id, cost_micros: now.cost_micros }, costMicros),
          },
    ]
  })

const checkHolds = (
  deps: CheckDeps,
  row: CheckedBatch,
  { open }: ChildCalls,
): readonly Finding[] => {
  const { id, ended_at } = row
  if (open === 0 || ended_at === null || ended_at.getTime() > deps.clock.nowMs() - inFlightMs)
    return []
  return [
    {
      subject: subjectOf(row),
      problem: `it is over, and ${open} of its lines still hold money`,
      remedy: "what they hold is given back",
      repair: deps.billing.voidChildren(id),
    },
  ]
}

/** Compares the cost of each batch of a page with what the ledger has charged. */
export const checkMoney = (
  deps: CheckDeps,
  rows: readonly CheckedBatch[],
): Effect.Effect<readonly Finding[], PortError> =>
  Effect.gen(function* () {
    const ledger = deps.ledger()
    if (!ledger || rows.length === 0) return []
    const children = yield* ledger.children(rows.map(({ id }) => id))
    const found: Finding[] = []
    for (const row of rows) {
      const calls = children.get(row.id) ?? { open: 0, costMicros: 0n }
      found.push(...(yield* checkCost(deps, row, calls)), ...checkHolds(deps, row, calls))
    }
    return found
  })
