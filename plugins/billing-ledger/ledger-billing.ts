import { Effect, Exit } from "effect"
import {
  type AdmitRequest,
  BalanceTooLow,
  type Billing,
  type Clock,
  type Database,
  type Log,
  type Metrics,
  type PortError,
  type Settlement,
  type Transaction,
} from "../../core/index.ts"
import { isUnknownOutcome } from "./failure.ts"
import { type GroupCommitOptions, makeGroupCommit, makeTurns } from "./group-commit.ts"
import { type InDoubtCalls, makeInDoubtCalls } from "./in-doubt-calls.ts"
import type { KeptSettlements } from "./kept-settlements.ts"
import { type LostHolds, makeLostHolds } from "./lost-holds.ts"
import { makeRefusals } from "./refused-requests.ts"
import type { SpareCall } from "./reserve.ts"
import type { Settings } from "./settings.ts"
import type { SettlementJournal } from "./settlement-journal.ts"
import { makeSettling } from "./settling.ts"
import { makeSpareCalls } from "./spare-calls.ts"
import type { AdmissionVerdict, LedgerRequest, LedgerSettlement } from "./statement-values.ts"
import { makeStatements, type Statements } from "./statements.ts"

export interface LedgerBillingDeps {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly settings: Pick<Settings, "maxGathered" | "maxInFlight" | "maxWaiting"> &
    Partial<Pick<Settings, "maxSpare">>
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
/** An admission's: spare calls arrive, are given back, and are not asked for again meanwhile. */
const maxTries = 3
const inDoubtPerTurn = 1_000
/** Lines of a batch arrive by the dozen, and nobody waits for a single one. */
const batchLingerMs = 25
/** Nor for a settlement whose reply has left, until somebody asks what it has changed. */
const behindLingerMs = 100
/** A statement holds the account of each call that it settles, which admissions wait for. */
const maxSettled = 32
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
    most = settings.maxGathered,
  ) =>
    makeGroupCommit({
      linger,
      locks: { turns, of: accountOf },
      maxItems: Math.min(settings.maxGathered, most),
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
  const lost = (requests: readonly LedgerRequest[]) => (error: PortError) =>
    Effect.sync(() => {
      if (isUnknownOutcome(error))
        for (const { id } of requests) inDoubt.add(id, "refused", clock.nowMs() + lostAfterMs)
    })
  return {
    admissions: group(
      "admit",
      (requests: readonly LedgerRequest[], nowMs) =>
        Effect.tapError(statements.admit(requests, replica, nowMs), lost(requests)),
      ({ counts, caller }) => (counts === "peek" ? undefined : caller.tenant.account),
      { ms: batchLingerMs, allows: ({ parent }) => parent !== undefined },
    ),
    settlements: group(
      "settle",
      (items: readonly LedgerSettlement[], nowMs) =>
        Effect.map(holds.settle(items, nowMs), () => items),
      ({ id, account }) => account ?? holds.accountOf(id),
      { ms: behindLingerMs, isPatient: true, allows: ({ id }) => isBehind(id) },
      maxSettled,
    ),
  }
}

/** Calls that are admitted before their requests arrive, through the same groups as all others. */
const makeSpares = (
  { clock, settings }: LedgerBillingDeps,
  { admissions, settlements }: ReturnType<typeof makeGroups>,
  inDoubt: InDoubtCalls,
) => {
  const giveBack = ({ id, account }: SpareCall) =>
    settlements
      .submit({ id, account, outcome: "refused", costMicros: 0n, usage: {}, httpStatus: 503 })
      .pipe(
        Effect.asVoid,
        Effect.catch(() => Effect.sync(() => inDoubt.add(id, "refused", clock.nowMs()))),
      )
  return makeSpareCalls({
    clock,
    most: settings.maxSpare ?? 0,
    admit: (requests, done) => {
      for (const request of requests)
        admissions.add(request, (exit) =>
          done(request, Exit.isSuccess(exit) ? exit.value : undefined),
        )
    },
    giveBack: (spares) =>
      Effect.forEach(spares, giveBack, { concurrency: "unbounded", discard: true }),
  })
}

/** What reads or changes sums waits for the settlements that are on their way. */
const makeDrainedFirst = (
  { clock }: LedgerBillingDeps,
  statements: Statements,
  drained: Effect.Effect<void>,
): Pick<Billing, "voidChildren" | "balance" | "spentThisMonth" | "adjust"> => {
  // a transaction may hold the lock that a settlement waits for
  const drainedFor = (tx: Transaction | undefined) => (tx ? Effect.void : drained)
  return {
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

/**
 * Billing on PostgreSQL. An admission or a settlement is one statement; concurrent ones share a
 * statement.
 */
export const makeLedgerBilling = (deps: LedgerBillingDeps): LedgerBilling => {
  const { clock } = deps
  const statements = makeStatements(deps.database)
  const inDoubt = makeInDoubtCalls(maxInDoubt)
  const answer = toPortAnswer(deps.metrics)
  const refusals = makeRefusals(deps.database, clock)
  const holds = makeLostHolds(statements, deps.replica, deps.log)
  const groups = makeGroups(deps, statements, holds, inDoubt, (id) => first?.has(id) === true)
  const { admissions, settlements } = groups
  const spares = makeSpares(deps, groups, inDoubt)
  const settling = makeSettling(deps, settlements, inDoubt, holds)
  const { kept, settleOne, first } = settling
  const drained = Effect.suspend(() => {
    settlements.hurry()
    return settling.drained
  })
  const settle: Billing["settle"] = (items, tx) =>
    Effect.suspend(() => {
      if (tx) return holds.settle(items.map(spares.spent), clock.nowMs(), tx)
      const [only] = items
      // several at once would each have a fiber
      return only && items.length === 1
        ? settleCall(only)
        : Effect.forEach(items, settleCall, { concurrency: "unbounded", discard: true })
    })
  const settleCall = (item: Settlement) =>
    Effect.map(settleOne(spares.spent(item)), () => spares.forget(item.id))
  /**
   * What is refused while settlements are on their way, or calls in reserve, is asked again when
   * they have arrived and are given back; more than once, as some may have been asked for meanwhile.
   */
  const admit = (
    request: AdmitRequest,
    tries = maxTries,
  ): Effect.Effect<AdmissionVerdict, PortError> =>
    Effect.flatMap(admissions.submit(request), (verdict) => {
      const corrected = spares.corrected(request, verdict)
      const givenBack = verdict.refused && spares.giveWay(request, verdict.refused.reason)
      if (!verdict.refused || tries === 1 || !(givenBack || first?.isBusy()))
        return Effect.succeed(corrected)
      const settled = Effect.andThen(givenBack ?? Effect.void, drained)
      return Effect.andThen(settled, admit(request, tries - 1))
    })

  return {
    closeInDoubt: Effect.suspend(() => settle(inDoubt.take(clock.nowMs(), inDoubtPerTurn))),
    kept,
    flushRefused: refusals.flush,
    sweepRefused: refusals.sweep,
    drained,
    noteRefused: refusals.note,
    idle: admissions.idle.pipe(
      Effect.andThen(spares.giveBack),
      Effect.andThen(drained),
      Effect.andThen(settlements.idle),
    ),
    admit: (request) =>
      Effect.suspend(() => {
        const rate = spares.take(request)
        if (rate) return answer(request, { rate })
        return Effect.flatMap(admit(request), (verdict) => {
          if (!verdict.refused) holds.admitted(request)
          else refusals.noteLimit(request, verdict.refused.reason)
          return answer(request, verdict)
        })
      }),
    settle,
    ...makeDrainedFirst(deps, statements, drained),
  }
}
