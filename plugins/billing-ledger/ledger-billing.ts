import { Effect } from "effect"
import {
  type AdmitRequest,
  BalanceTooLow,
  type Billing,
  type Clock,
  type Database,
  type Log,
  type Metrics,
  type PortError,
  type Refusal,
  type RefusedRequest,
  type Settlement,
  type Transaction,
} from "../../core/index.ts"
import { isAboutItems, isUnknownOutcome } from "./failure.ts"
import { type GroupCommitOptions, makeGroupCommit, makeTurns } from "./group-commit.ts"
import { type InDoubtCalls, makeInDoubtCalls } from "./in-doubt-calls.ts"
import { type JournalFirst, makeJournalFirst } from "./journal-first.ts"
import { type KeptSettlements, makeKeptSettlements } from "./kept-settlements.ts"
import { type LostHolds, makeLostHolds } from "./lost-holds.ts"
import { makeRefusedCalls, refusedByLimit, refusedRequest } from "./refused-calls.ts"
import { makeRefusedRequests } from "./refused-requests.ts"
import type { Settings } from "./settings.ts"
import type { SettlementJournal } from "./settlement-journal.ts"
import type { AdmissionVerdict } from "./statement-values.ts"
import { makeStatements, type Statements } from "./statements.ts"

export interface LedgerBillingDeps {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly settings: Pick<Settings, "maxGathered" | "maxInFlight" | "maxWaiting">
  /** The owner of the calls that are admitted here; those still open expire with its lease. */
  readonly replica: string
  /** Where settlements are kept that the database can't take. Absent: in memory only. */
  readonly journal?: SettlementJournal
  /** A settlement succeeds as soon as the journal has it. */
  readonly journalFirst?: boolean
}

export interface LedgerBilling extends Billing {
  /** Closes in-doubt calls that are due; what the database can't take is kept, as any settlement. */
  readonly closeInDoubt: Effect.Effect<void, PortError>
  /** Writes down what `noteRefused` has counted, and some of it for the call log. */
  readonly flushRefused: Effect.Effect<void, PortError>
  /** Deletes what the call log keeps no longer; returns the number of rows. */
  readonly sweepRefused: Effect.Effect<number, PortError>
  /** Ends when the database has all settlements that succeeded before. */
  readonly drained: Effect.Effect<void>
  /** The settlements that the database could not take yet. */
  readonly kept: Omit<KeptSettlements, "keep">
  /** Ends when nothing waits for the database. */
  readonly idle: Effect.Effect<void>
}

const maxInDoubt = 10_000
const inDoubtPerTurn = 1_000
const maxRefusedRows = 10_000
/** Lines of a batch arrive by the dozen, and nobody waits for a single one. */
const batchLingerMs = 25
/** Nor for a settlement whose reply has left; but its hold and its slot are still taken. */
const behindLingerMs = 5
/**
 * A lost admission may still wait for its lock and commit; after this time the server's statement
 * timeout has ended it.
 */
const lostAfterMs = 60_000

/** Counts the verdict and turns a refusal into the error of the port. */
const toPortAnswer = (metrics: Metrics) => {
  const admissions = metrics.counter("rakit_admissions_total", "Calls by what admission said.", [
    "result",
  ])
  return (request: AdmitRequest, { rate, refused }: AdmissionVerdict) => {
    if (request.counts !== "peek") admissions.add(1, { result: refused?.reason ?? "admitted" })
    return refused
      ? Effect.fail({ _tag: "Refusal" as const, ...refused, rate })
      : Effect.succeed(rate)
  }
}

/** One group commit for admissions, one for settlements. */
const makeGroups = (
  { clock, log, metrics, settings, replica }: LedgerBillingDeps,
  statements: Statements,
  holds: LostHolds,
  inDoubt: InDoubtCalls,
  isBehind: (id: string) => boolean,
) => {
  const gathered = metrics.histogram(
    "rakit_ledger_gathered_calls",
    "Calls in one statement of the ledger.",
    [1, 2, 4, 8, 16, 32, 64, 128],
    ["statement"],
  )
  const turns = makeTurns()
  const group = <Item, Answer>(
    statement: string,
    run: (items: readonly Item[], nowMs: number) => Effect.Effect<readonly Answer[], PortError>,
    accountOf: (item: Item) => string | undefined,
    linger: NonNullable<GroupCommitOptions<Item, Answer>["linger"]>,
  ) =>
    makeGroupCommit({
      linger,
      locks: { turns, of: accountOf },
      maxItems: settings.maxGathered,
      maxInFlight: settings.maxInFlight,
      maxWaiting: settings.maxWaiting,
      run: (items: readonly Item[]) => {
        gathered.observe(items.length, { statement })
        return Effect.tapError(run(items, clock.nowMs()), (error) =>
          Effect.sync(() =>
            log.warn("ledger.statement_failed", "a statement of the ledger failed", {
              statement,
              calls: items.length,
              reason: error.message,
            }),
          ),
        )
      },
    })
  const lost = (requests: readonly AdmitRequest[]) => (error: PortError) =>
    Effect.sync(() => {
      if (isUnknownOutcome(error))
        for (const { id } of requests) inDoubt.add(id, "refused", clock.nowMs() + lostAfterMs)
    })
  return {
    admissions: group(
      "admit",
      (requests: readonly AdmitRequest[], nowMs) =>
        Effect.tapError(statements.admit(requests, replica, nowMs), lost(requests)),
      ({ counts, caller }) => (counts === "peek" ? undefined : caller.tenant.account),
      { ms: batchLingerMs, allows: ({ parent }) => parent !== undefined },
    ),
    settlements: group(
      "settle",
      (items: readonly Settlement[], nowMs) => Effect.map(holds.settle(items, nowMs), () => items),
      ({ id }) => holds.accountOf(id),
      { ms: behindLingerMs, allows: ({ id }) => isBehind(id) },
    ),
  }
}

/** Settles through the group or, where replies leave after the journal, behind them. */
const makeSettling = (
  deps: LedgerBillingDeps,
  submit: (item: Settlement) => Effect.Effect<unknown, PortError>,
  inDoubt: InDoubtCalls,
) => {
  /** A call whose settlement the ledger refuses must not keep its hold. */
  const onRefused = ({ id, outcome }: Settlement) => {
    if (outcome !== "voided") inDoubt.add(id, "voided", deps.clock.nowMs())
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
  const settleNow = (item: Settlement) =>
    submit(item).pipe(
      Effect.asVoid,
      Effect.catch((error) => {
        if (!isAboutItems(error)) return keep(item)
        onRefused(item)
        return Effect.fail(error)
      }),
      Effect.uninterruptible,
    )
  const first: JournalFirst | undefined =
    deps.journal && deps.journalFirst
      ? makeJournalFirst(deps.journal, settleNow, () => kept.size() === 0)
      : undefined
  const settleOne = (item: Settlement) =>
    first
      ? Effect.uninterruptible(
          Effect.flatMap(first.take(item), (isTaken) => (isTaken ? Effect.void : settleNow(item))),
        )
      : settleNow(item)
  return { kept, settleOne, first, drained: first?.drained ?? Effect.void }
}

/** Counts refused requests by the hour, and keeps some of them for the call log. */
const makeRefusals = ({ database, clock }: LedgerBillingDeps) => {
  const counts = makeRefusedRequests(database, clock, maxRefusedRows)
  const log = makeRefusedCalls(database, clock)
  return {
    flush: Effect.andThen(counts.flush, log.flush),
    sweep: log.sweep,
    note: (request: RefusedRequest) => {
      // an administrator's attempt is not the customer's
      if (request.caller.readOnly === "read_only_session") return
      const refused = refusedRequest(request)
      counts.note(refused)
      log.note(refused)
    },
    noteLimit: (request: AdmitRequest, reason: Refusal["reason"]) => {
      if (request.counts !== "all") return
      const refused = refusedByLimit(request, reason)
      counts.noteLimit(refused)
      log.note(refused)
    },
  }
}

/**
 * Billing on PostgreSQL. An admission or a settlement is one statement; concurrent ones share a
 * statement.
 */
export const makeLedgerBilling = (deps: LedgerBillingDeps): LedgerBilling => {
  const { clock } = deps
  const statements = makeStatements(deps.database)
  const inDoubt = makeInDoubtCalls(maxInDoubt)
  const answer = toPortAnswer(deps.metrics)
  const refusals = makeRefusals(deps)
  const holds = makeLostHolds(statements, deps.replica, deps.log)
  const isBehind = (id: string) => first?.has(id) === true
  const { admissions, settlements } = makeGroups(deps, statements, holds, inDoubt, isBehind)
  const { kept, settleOne, first, drained } = makeSettling(deps, settlements.submit, inDoubt)
  // a transaction may hold the lock that a settlement waits for
  const drainedFor = (tx: Transaction | undefined) => (tx ? Effect.void : drained)

  const settle: Billing["settle"] = (items, tx) =>
    Effect.suspend(() => {
      if (tx) return holds.settle(items, clock.nowMs(), tx)
      const [only] = items
      // several at once would each have a fiber
      return only && items.length === 1
        ? settleOne(only)
        : Effect.forEach(items, settleOne, { concurrency: "unbounded", discard: true })
    })
  /** What is refused while settlements are on their way is asked again when they have arrived. */
  const admit = (request: AdmitRequest) =>
    Effect.flatMap(admissions.submit(request), (verdict) =>
      verdict.refused && first?.isBusy()
        ? Effect.andThen(first.drained, admissions.submit(request))
        : Effect.succeed(verdict),
    )

  return {
    closeInDoubt: Effect.suspend(() => settle(inDoubt.take(clock.nowMs(), inDoubtPerTurn))),
    kept,
    flushRefused: refusals.flush,
    sweepRefused: refusals.sweep,
    drained,
    noteRefused: refusals.note,
    idle: Effect.andThen(admissions.idle, Effect.andThen(drained, settlements.idle)),
    admit: (request) =>
      Effect.flatMap(admit(request), (verdict) => {
        if (!verdict.refused) holds.admitted(request)
        else refusals.noteLimit(request, verdict.refused.reason)
        return answer(request, verdict)
      }),
    settle,
    // what is settled and on its way would be voided before it arrives
    voidChildren: (parent, tx) =>
      Effect.andThen(
        drainedFor(tx),
        Effect.suspend(() => statements.voidChildren(parent, clock.nowMs(), tx)),
      ),
    balance: (account, tx) => Effect.andThen(drainedFor(tx), statements.balance(account, tx)),
    spentThisMonth: (keyIds) =>
      Effect.andThen(
        drained,
        Effect.suspend(() => statements.spentThisMonth(keyIds, clock.nowMs())),
      ),
    adjust: (entry, tx) =>
      Effect.flatMap(
        Effect.andThen(
          drainedFor(tx),
          Effect.suspend(() => statements.adjust(entry, clock.nowMs(), tx)),
        ),
        (result) =>
          result === "too_low"
            ? Effect.fail(new BalanceTooLow({ account: entry.account }))
            : Effect.void,
      ),
  }
}
