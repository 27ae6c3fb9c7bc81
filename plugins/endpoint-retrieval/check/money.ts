import { Effect } from "effect"
import { sql } from "kysely"
import { type ChildCalls, type Finding, formatRupiah, type PortError } from "../../../core/index.ts"
import { type CheckDeps, type CheckedDocument, isEnded, subjectOf } from "./checked-document.ts"

/** A call outlives its document by seconds, until its replica settles it. */
const inFlightMs = 3_600_000

const setCost = (
  { database }: CheckDeps,
  { no, epoch }: CheckedDocument,
  costMicros: bigint,
): Effect.Effect<void, PortError> =>
  Effect.asVoid(
    database.run(() =>
      sql`UPDATE retrieval_document SET cost_micros = ${costMicros} WHERE no = ${no} AND epoch = ${epoch}`.execute(
        database.queries(),
      ),
    ),
  )

const moneyFindings = (
  deps: CheckDeps,
  row: CheckedDocument,
  { open, costMicros }: ChildCalls,
): readonly Finding[] => {
  const subject = subjectOf(row)
  const found: Finding[] = []
  if (isEnded(row) && costMicros !== row.cost_micros)
    found.push({
      subject,
      problem: `it says that it cost Rp${formatRupiah(row.cost_micros)}; the ledger says Rp${formatRupiah(costMicros)}`,
      remedy: "it says what the ledger says",
      repair: setCost(deps, row, costMicros),
    })
  if (isEnded(row) && open > 0 && row.created_at.getTime() <= deps.clock.nowMs() - inFlightMs)
    found.push({
      subject,
      problem: "its ingest is over, and still holds money",
      remedy: "what it holds is given back",
      repair: deps.billing.voidChildren(row.file_id),
    })
  return found
}

/** Compares what the documents of a page cost with what the ledger has charged for their files. */
export const checkMoney = (
  deps: CheckDeps,
  rows: readonly CheckedDocument[],
): Effect.Effect<ReadonlyMap<bigint, readonly Finding[]>, PortError> =>
  Effect.gen(function* () {
    const ledger = deps.ledger()
    if (!ledger || rows.length === 0) return new Map()
    const children = yield* ledger.children(rows.map(({ file_id }) => file_id))
    return new Map(
      rows.map((row) => {
        const calls = children.get(row.file_id) ?? { open: 0, costMicros: 0n }
        return [row.no, moneyFindings(deps, row, calls)]
      }),
    )
  })
