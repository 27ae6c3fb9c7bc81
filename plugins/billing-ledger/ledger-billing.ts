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
  type Settlement,
} from "../../core/index.ts"
import { isAboutItems, isUnknownOutcome } from "./failure.ts"
import { type GatherOptions, makeGatherer } from "./group-commit.ts"
import type { Settings } from "./settings.ts"
import { makeStatements, type Statements, type Verdict } from "./statements.ts"
import { makeStrays, type Strays } from "./in-doubt-calls.ts"

export interface LedgerParts {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly settings: Pick<Settings, "maxGathered" | "maxInFlight" | "maxWaiting">
  /** Whose open calls these are; they expire with its lease. */
  readonly replica: string
}

export interface LedgerBilling extends Billing {
  /** Closes what lost its answer. What fails is noted for the next time. */
  readonly closeStrays: Effect.Effect<void, PortError>
  /** Ends when nothing waits for the database. */
  readonly idle: Effect.Effect<void>
}

const maxStrays = 10_000
const straysPerTurn = 1_000
/** Lines of a batch come by the dozen, and nobody waits for one of them. */
const batchPatienceMs = 25
/** A lost admission may still wait for its lock and commit; by then the server's statement timeout has ended it. */
const lostAfterMs = 60_000

/** Counts, and hands a refusal over as the error that the port names. */
const makeAnswer = (metrics: Metrics) => {
  const admissions = metrics.counter("rakit_admissions_total", "Calls by what admission said.", [
    "result",
  ])
  return (request: AdmitRequest, { rate, refused }: Verdict) => {
    if (request.counts !== "peek") admissions.add(1, { result: refused?.reason ?? "admitted" })
    return refused
      ? Effect.fail({ _tag: "Refusal" as const, ...refused, rate })
      : Effect.succeed(rate)
  }
}

/** Gatherers for both kinds of statements. */
const makeSteps = (
  { clock, log, metrics, settings, replica }: LedgerParts,
  statements: Statements,
  strays: Strays,
) => {
  const gathered = metrics.histogram(
    "rakit_ledger_gathered_calls",
    "Calls in one statement of the ledger.",
    [1, 2, 4, 8, 16, 32, 64, 128],
    ["statement"],
  )
  const gatherer = <Item, Answer>(
    statement: string,
    run: (items: readonly Item[], nowMs: number) => Effect.Effect<readonly Answer[], PortError>,
    patience?: GatherOptions<Item, Answer>["patience"],
  ) =>
    makeGatherer({
      ...(patience && { patience }),
      maxItems: settings.maxGathered,
      maxInFlight: settings.maxInFlight,
      maxWaiting: settings.maxWaiting,
      run: (items: readonly Item[]) =>
        Effect.suspend(() => {
          gathered.observe(items.length, { statement })
          return run(items, clock.nowMs())
        }).pipe(
          Effect.tapError((error) =>
            Effect.sync(() =>
              log.warn("ledger.statement_failed", "a statement of the ledger failed", {
                statement,
                calls: items.length,
                reason: error.message,
              }),
            ),
          ),
        ),
    })
  const lost = (requests: readonly AdmitRequest[]) => (error: PortError) =>
    Effect.sync(() => {
      if (isUnknownOutcome(error))
        for (const { id } of requests) strays.add(id, "refused", clock.nowMs() + lostAfterMs)
    })
  return {
    admissions: gatherer(
      "admit",
      (requests: readonly AdmitRequest[], nowMs) =>
        Effect.tapError(statements.admit(requests, replica, nowMs), lost(requests)),
      {
        ms: batchPatienceMs,
        can: ({ parent }) => parent !== undefined,
      },
    ),
    settlements: gatherer("settle", (items: readonly Settlement[], nowMs) =>
      Effect.map(statements.settle(items, nowMs), () => items),
    ),
  }
}

/** Billing on PostgreSQL. Every step is one statement; concurrent steps share statements. */
export const makeLedgerBilling = (parts: LedgerParts): LedgerBilling => {
  const { clock } = parts
  const statements = makeStatements(parts.database)
  const strays = makeStrays(maxStrays)
  const answer = makeAnswer(parts.metrics)
  const { admissions, settlements } = makeSteps(parts, statements, strays)

  /** Whatever the reason: a call that could not be settled must not keep its hold. */
  const settleOne = (item: Settlement) =>
    settlements.submit(item).pipe(
      Effect.tapError((error) =>
        Effect.sync(() => {
          if (item.outcome !== "voided" || !isAboutItems(error))
            strays.add(item.id, "voided", clock.nowMs())
        }),
      ),
      Effect.uninterruptible,
    )
  const settle: Billing["settle"] = (items, tx) =>
    Effect.suspend(() =>
      tx
        ? statements.settle(items, clock.nowMs(), tx)
        : Effect.forEach(items, settleOne, { concurrency: "unbounded", discard: true }),
    )

  return {
    closeStrays: Effect.suspend(() => settle(strays.take(clock.nowMs(), straysPerTurn))),
    idle: Effect.andThen(admissions.idle, settlements.idle),
    admit: (request) =>
      Effect.flatMap(admissions.submit(request), (verdict) => answer(request, verdict)),
    settle,
    voidChildren: (parent, tx) =>
      Effect.suspend(() => statements.voidChildren(parent, clock.nowMs(), tx)),
    balance: statements.balance,
    spentThisMonth: (keyIds) =>
      Effect.suspend(() => statements.spentThisMonth(keyIds, clock.nowMs())),
    adjust: (entry, tx) =>
      Effect.flatMap(
        Effect.suspend(() => statements.adjust(entry, clock.nowMs(), tx)),
        (result) =>
          result === "too_low"
            ? Effect.fail(new BalanceTooLow({ account: entry.account }))
            : Effect.void,
      ),
  }
}
