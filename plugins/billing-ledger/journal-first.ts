import { Effect } from "effect"
import type { PortError, Settlement } from "../../core/index.ts"
import { makeGroupCommit } from "./group-commit.ts"
import type { SettlementJournal } from "./settlement-journal.ts"

export interface JournalFirst {
  /**
   * Succeeds when the settlement is in the journal, from where it goes on to the database. False:
   * there is no room, or the disk does not take it.
   */
  take(item: Settlement): Effect.Effect<boolean>
  /** Whether something that was taken is not in the database yet. */
  readonly isBusy: () => boolean
  /** Ends when all that was taken before is in the database, or kept as in an outage. */
  readonly drained: Effect.Effect<void>
  has(id: string): boolean
}

/** More than the database takes in the time of a few statements: then replies wait for it again. */
const maxTaken = 1_000
/** Some 10,000 settlements. Beyond that replies wait until the journal has been emptied. */
const maxJournalBytes = 8 * 2 ** 20
const perWrite = 1_000

/**
 * Lets a reply leave when its settlement is in the journal, where a process that is killed leaves
 * it. States of one: taken -> in the journal -> in the database (`settle`, which keeps it where the
 * database takes nothing). `keepsNone`: nothing of that sort is left in the journal.
 */
export const makeJournalFirst = (
  journal: SettlementJournal,
  settle: (item: Settlement) => Effect.Effect<void, PortError>,
  keepsNone: () => boolean,
): JournalFirst => {
  /** By their number, in the order in which they came. */
  const taken = new Map<string, number>()
  const waiters = new Map<() => void, number>()
  let lastNumber = 0
  const writes = makeGroupCommit({
    maxItems: perWrite,
    maxInFlight: 1,
    maxWaiting: maxTaken,
    run: (items: readonly Settlement[]) =>
      Effect.as(journal.append(items, { flush: false }), items),
  })
  const isEmpty = () => taken.size === 0 && keepsNone()
  const end = (id: string) => {
    taken.delete(id)
    const [oldest = Number.POSITIVE_INFINITY] = taken.values()
    for (const [wake, number] of waiters) if (number < oldest && waiters.delete(wake)) wake()
    if (isEmpty() && journal.bytes() > maxJournalBytes / 2)
      Effect.runFork(Effect.ignore(journal.clear(isEmpty)))
  }
  const pass = (item: Settlement) => {
    // `settle` logs what it could not do
    Effect.runFork(
      Effect.ensuring(
        Effect.ignore(settle(item)),
        Effect.sync(() => end(item.id)),
      ),
    )
    return true
  }
  const take = (item: Settlement): Effect.Effect<boolean> =>
    Effect.suspend(() => {
      if (taken.size >= maxTaken || journal.bytes() > maxJournalBytes) return Effect.succeed(false)
      taken.set(item.id, ++lastNumber)
      return Effect.match(writes.submit(item), {
        onSuccess: () => pass(item),
        onFailure: () => {
          end(item.id)
          return false
        },
      })
    })
  const drained = Effect.callback<void>((resume) => {
    if (taken.size === 0) return resume(Effect.void)
    const wake = () => resume(Effect.void)
    waiters.set(wake, lastNumber)
    return Effect.sync(() => void waiters.delete(wake))
  })
  return { take, isBusy: () => taken.size > 0, drained, has: (id) => taken.has(id) }
}
