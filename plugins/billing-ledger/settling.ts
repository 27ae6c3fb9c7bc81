import { Effect, Exit } from "effect"
import type { PortError } from "../../core/index.ts"
import { isAboutItems } from "./failure.ts"
import type { GroupCommit } from "./group-commit.ts"
import type { InDoubtCalls } from "./in-doubt-calls.ts"
import { type JournalFirst, makeJournalFirst } from "./journal-first.ts"
import { makeKeptSettlements } from "./kept-settlements.ts"
import type { LedgerBillingDeps } from "./ledger-billing.ts"
import type { LostHolds } from "./lost-holds.ts"
import type { LedgerSettlement } from "./statement-values.ts"

/** Settles through the group or, where replies leave after the journal, behind them. */
export const makeSettling = (
  deps: Pick<LedgerBillingDeps, "clock" | "log" | "metrics" | "journal" | "journalFirst">,
  { submit, add }: Pick<GroupCommit<LedgerSettlement, unknown>, "submit" | "add">,
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
  const orKept = (item: LedgerSettlement, settled: Effect.Effect<unknown, PortError>) =>
    settled.pipe(
      Effect.asVoid,
      Effect.catch((error) => {
        if (!isAboutItems(error)) return keep(remembered(item))
        onRefused(item)
        return Effect.fail(error)
      }),
      Effect.uninterruptible,
    )
  const settleNow = (item: LedgerSettlement) => orKept(item, submit(item))
  /** Nobody waits for it, so that only a failure has a fiber. */
  const settleBehind = (item: LedgerSettlement, ended: () => void): void =>
    add(item, (exit) => {
      if (Exit.isSuccess(exit)) return ended()
      // `orKept` logs what it could not do
      Effect.runFork(Effect.ensuring(Effect.ignore(orKept(item, exit)), Effect.sync(ended)))
    })
  const first: JournalFirst | undefined =
    deps.journal && deps.journalFirst
      ? makeJournalFirst(deps.journal, settleBehind, () => kept.size() === 0)
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
