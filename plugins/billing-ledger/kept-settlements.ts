import { Effect, Exit, Option, Semaphore } from "effect"
import { type Log, type Metrics, PortError, type Settlement } from "../../core/index.ts"
import { isAboutItems } from "./failure.ts"
import { makeGroupCommit } from "./group-commit.ts"
import { lineOf, type SettlementJournal } from "./settlement-journal.ts"

export interface KeptSettlementsDeps {
  readonly journal: SettlementJournal | undefined
  readonly log: Log
  readonly metrics: Metrics
  readonly settle: (item: Settlement) => Effect.Effect<unknown, PortError>
  /**
   * Present where the journal also holds what is on its way to the database; whether it does now.
   * Living replicas then settle their own, but for the first look: who was killed a moment ago seems
   * to live.
   */
  readonly isBusy?: () => boolean
  /** Called for one whose data the ledger refuses. */
  readonly onRefused: (item: Settlement) => void
}

export interface KeptSettlements {
  /** Succeeds when it is kept: in the journal, or at least in memory. */
  keep(item: Settlement): Effect.Effect<void, PortError>
  /**
   * Settles what is kept, in the order in which it came. Fails when the database still takes
   * nothing.
   */
  readonly settleAll: Effect.Effect<void, PortError>
  /** Takes over what other replicas have left; their journals go once `isAlive` denies them. */
  adopt(isAlive: (replica: string) => boolean): Effect.Effect<void, PortError>
  readonly size: () => number
}

const maxKept = 100_000
const perTurn = 128
const perWrite = 1_000

const tooMany = () =>
  new PortError({
    port: "billing",
    message: `${maxKept} settlements already wait for the database`,
    why: "unavailable",
  })

/** Writes to the journal, many at once; what it does not take is `unwritten`. */
const makeWrites = ({ journal, log }: KeptSettlementsDeps, isKept: (id: string) => boolean) => {
  const unwritten = new Map<string, Settlement>()
  const writes = makeGroupCommit({
    maxItems: perWrite,
    maxInFlight: 1,
    maxWaiting: maxKept,
    run: (items: readonly Settlement[]) =>
      (journal?.append(items.map(lineOf)) ?? Effect.void).pipe(
        Effect.tapError(({ message }) =>
          Effect.sync(() =>
            log.error(
              "ledger.journal_failed",
              "settlements are kept in memory only: a restart before the database is back loses them",
              { calls: items.length, reason: message },
            ),
          ),
        ),
        Effect.as(items),
      ),
  })

  const write = (item: Settlement) =>
    Effect.match(writes.submit(item), {
      onSuccess: () => void unwritten.delete(item.id),
      onFailure: () => void (isKept(item.id) && unwritten.set(item.id, item)),
    })
  return { write, unwritten }
}

/** The journals of others, but for those that can't be read. */
const readable = ({ others }: SettlementJournal, log: Log) =>
  Effect.map(others, (found) =>
    [...found].flatMap(([replica, items]) => {
      if (items) return [[replica, items] as const]
      log.warn(
        "ledger.journal_unreadable",
        "settlements that another server has kept can't be read; its file stays where it is",
        { replica },
      )
      return []
    }),
  )

/**
 * Settlements that the database could not take. States of one: kept (journal and memory) -> settled
 * -> forgotten (the journal is emptied when nothing is kept any more). A settlement counts once for
 * each call, so that it does no harm to settle one again that had arrived after all.
 */
export const makeKeptSettlements = (deps: KeptSettlementsDeps): KeptSettlements => {
  const { journal, log, isBusy } = deps
  const kept = new Map<string, Settlement>()
  const gauge = deps.metrics.gauge(
    "rakit_settlements_waiting",
    "Settlements that wait until the database takes them.",
  )
  let hasAdopted = false
  const { write, unwritten } = makeWrites(deps, (id) => kept.has(id))

  const keep = (item: Settlement): Effect.Effect<void, PortError> =>
    Effect.suspend(() => {
      if (kept.has(item.id)) return Effect.void
      if (kept.size >= maxKept) return Effect.fail(tooMany())
      if (kept.size === 0)
        log.warn(
          "ledger.settlements_kept",
          "the database takes no settlements; they are kept until it does",
        )
      kept.set(item.id, item)
      gauge.set(kept.size)
      return write(item)
    })

  /** Whether it is over, one way or the other. */
  const settleOne = (item: Settlement) =>
    Effect.map(Effect.exit(deps.settle(item)), (exit) => {
      const error = Option.getOrUndefined(Exit.findErrorOption(exit))
      if (error && !isAboutItems(error)) return error
      if (error) deps.onRefused(item)
      kept.delete(item.id)
      unwritten.delete(item.id)
      return undefined
    })

  const settleKept = Effect.gen(function* () {
    const cleared = journal?.clear(() => kept.size === 0 && !isBusy?.()) ?? Effect.void
    if (kept.size === 0) return yield* cleared
    const total = kept.size
    while (kept.size > 0) {
      const turn = [...kept.values()].slice(0, perTurn)
      const errors = yield* Effect.forEach(turn, settleOne, { concurrency: "unbounded" })
      gauge.set(kept.size)
      const error = errors.find((one) => one !== undefined)
      // what the disk had no room for may have some now
      if (error) yield* Effect.forEach([...unwritten.values()], write, { concurrency: perWrite })
      if (error) return yield* error
    }
    log.info("ledger.settlements_settled", "the settlements that were kept are settled", { total })
    yield* cleared
  })

  // twice at once would settle a call twice in one statement
  const settleAll = Semaphore.makeUnsafe(1).withPermits(1)(settleKept)

  const adopt = (isAlive: (replica: string) => boolean) =>
    Effect.gen(function* () {
      if (!journal) return
      for (const [replica, items] of yield* readable(journal, log)) {
        if (isBusy && hasAdopted && isAlive(replica)) continue
        yield* Effect.forEach(items, keep, { concurrency: perWrite, discard: true })
        if (isAlive(replica) || items.some(({ id }) => unwritten.has(id))) continue
        yield* Effect.ignore(journal.remove(replica, items))
      }
      hasAdopted = true
    })

  return { keep, settleAll, adopt, size: () => kept.size }
}
