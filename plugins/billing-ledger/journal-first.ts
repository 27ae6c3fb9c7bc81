import { Effect, Exit } from "effect"
import type { PortError, Settlement } from "../../core/index.ts"
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
/**
 * Some 300 settlements: after so many, those that have settled are written over. Most of what the
 * journal reserves is left for an outage on a full disk.
 */
const rewindBytes = 2 ** 18
/** Beyond that, as where the database takes nothing, replies wait for it. */
const maxJournalBytes = 8 * 2 ** 20

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
  /** In the order in which they came, with their number. */
  const taken = new Map<string, { readonly item: Settlement; readonly number: number }>()
  const waiters = new Map<() => void, number>()
  let lastNumber = 0
  let lastBytes = 0
  let rewindAt = rewindBytes
  const end = (id: string) => {
    taken.delete(id)
    const [oldest] = taken.values()
    for (const [wake, number] of waiters)
      if (!(oldest && number >= oldest.number) && waiters.delete(wake)) wake()
  }
  const counted = () => {
    if (!keepsNone()) return undefined
    rewindAt = journal.bytes() + rewindBytes
    return [...taken.values()].map(({ item }) => item)
  }
  const makeRoom = Effect.suspend(() => {
    const bytes = journal.bytes()
    // rewound or emptied
    if (bytes < lastBytes) rewindAt = rewindBytes
    lastBytes = bytes
    return bytes < rewindAt ? Effect.void : journal.rewind(counted)
  })
  const refuse = () => {
    rewindAt = 0
    return false
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
  const append = (item: Settlement): Effect.Effect<boolean> =>
    Effect.suspend(() => {
      if (taken.size >= maxTaken || journal.bytes() > maxJournalBytes)
        return Effect.succeed(refuse())
      taken.set(item.id, { item, number: ++lastNumber })
      return Effect.map(Effect.exit(journal.append([item], { flush: false })), (exit) => {
        if (Exit.isSuccess(exit)) return pass(item)
        end(item.id)
        return refuse()
      })
    })
  const take = (item: Settlement) => Effect.andThen(makeRoom, append(item))
  const drained = Effect.callback<void>((resume) => {
    if (taken.size === 0) return resume(Effect.void)
    const wake = () => resume(Effect.void)
    waiters.set(wake, lastNumber)
    return Effect.sync(() => void waiters.delete(wake))
  })
  return { take, isBusy: () => taken.size > 0, drained, has: (id) => taken.has(id) }
}
