import { Effect } from "effect"
import type { PortError } from "../../core/index.ts"
import { isAboutItems } from "./failure.ts"
import type { InDoubtCalls } from "./in-doubt-calls.ts"
import { type JournalFirst, makeJournalFirst } from "./journal-first.ts"
import { makeKeptSettlements } from "./kept-settlements.ts"
import type { LedgerBillingDeps } from "./ledger-billing.ts"
import type { LostHolds } from "./lost-holds.ts"
import type { LedgerSettlement } from "./statement-values.ts"

/** Settles through the group or, where replies leave after the journal, behind them. */
export const makeSettling = (
  deps: Pick<LedgerBillingDeps, "clock" | "log" | "metrics" | "journal" | "journalFirst">,
  submit: (item: LedgerSettlement) => Effect.Effect<unknown, PortError>,
  inDoubt: InDoubtCalls,
  { remembered }: Pick<LostHolds, "remembered">,
) => {
  /** A call whose settlement the ledger refuses must not keep its hold. */
  const onRefused = ({ id, outcome, spare }: LedgerSettlement) => {
    if (spare) inDoubt.add(spare.id, "refused", deps.clock.nowMs())
    else if (outcome !== "voided") inDoubt.add(id, "voided", deps.clock.nowMs())
    deps.log.error("ledger.settlement_refused", "the ledger refuses a settlement; it is voided", {
      call_id: id,
    })
  }
  const { keep, ...kept } = makeKeptSettlements({
    journal: deps.journal,
    log: deps.log,
    metrics: deps.metrics,
    settle: submit,
    onRefused,
    ...(deps.journalFirst && { isBusy: () => first?.isBusy() === true }),
  })
  /** The caller has its answer, whether or not the database can write down now what it costs. */
  const settleNow = (item: LedgerSettlement) =>
    submit(item).pipe(
      Effect.asVoid,
      Effect.catch((error) => {
        if (!isAboutItems(error)) return keep(remembered(item))
        onRefused(item)
        return Effect.fail(error)
      }),
      Effect.uninterruptible,
    )
  const first: JournalFirst | undefined =
    deps.journal && deps.journalFirst
      ? makeJournalFirst(deps.journal, settleNow, () => kept.size() === 0)
      : undefined
  const settleOne = (item: LedgerSettlement) =>
    first
      ? Effect.uninterruptible(
          Effect.flatMap(first.take(remembered(item)), (isTaken) =>
            isTaken ? Effect.void : settleNow(item),
          ),
        )
      : settleNow(item)
  return { kept, settleOne, first, drained: first?.drained ?? Effect.void }
}
