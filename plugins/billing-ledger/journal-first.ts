import { Effect, Exit } from "effect"
import type { Settlement } from "../../core/index.ts"
import { BriefMap } from "./brief-map.ts"
import { lineOf, type SettlementJournal } from "./settlement-journal.ts"

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

interface Arrived {
  readonly item: Settlement
  readonly line: string
  readonly done: (isTaken: boolean) => void
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
  settle: (item: Settlement, ended: () => void) => void,
  keepsNone: () => boolean,
): JournalFirst => {
  /** In the order in which they came, with their number. */
  const taken = new BriefMap<string, { readonly line: string; readonly number: number }>()
  const waiters = new Map<() => void, number>()
  let arrived: Arrived[] = []
  let lastNumber = 0
  let lastBytes = 0
  let rewindAt = rewindBytes
  const end = (id: string) => {
    taken.delete(id)
    const oldest = taken.oldest()
    for (const [wake, number] of waiters)
      if (!(oldest && number >= oldest.number) && waiters.delete(wake)) wake()
  }
  const counted = () => {
    if (!keepsNone()) return undefined
    rewindAt = journal.bytes() + rewindBytes
    return taken.values().map(({ line }) => line)
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
  const append = (): void => {
    const batch = arrived
    arrived = []
    const lines = batch.map(({ line }) => line)
    const written = Effect.andThen(makeRoom, journal.append(lines, { flush: false }))
    Effect.runFork(written).addObserver((exit) => {
      const isTaken = Exit.isSuccess(exit)
      if (!isTaken) refuse()
      for (const { item, done } of batch) {
        if (isTaken) settle(item, () => end(item.id))
        else end(item.id)
        done(isTaken)
      }
    })
  }
  // those that arrive in one task of the event loop, as cohorts do, share a write
  const take = (item: Settlement) =>
    Effect.callback<boolean>((resume) => {
      if (taken.size >= maxTaken || journal.bytes() > maxJournalBytes)
        return resume(Effect.succeed(refuse()))
      const line = lineOf(item)
      taken.set(item.id, { line, number: ++lastNumber })
      const done = (isTaken: boolean) => resume(Effect.succeed(isTaken))
      if (arrived.push({ item, line, done }) === 1) queueMicrotask(append)
    })
  const drained = Effect.callback<void>((resume) => {
    if (taken.size === 0) return resume(Effect.void)
    const wake = () => resume(Effect.void)
    waiters.set(wake, lastNumber)
    return Effect.sync(() => void waiters.delete(wake))
  })
  return { take, isBusy: () => taken.size > 0, drained, has: (id) => taken.has(id) }
}
