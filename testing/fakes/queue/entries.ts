import type { Json } from "../../../core/json.ts"
import type { Clock } from "../../../core/services/clock.ts"

/** waiting -> leased -> (gone) | waiting (failed, released, or lost its lease) | dead. */
export interface Entry {
  readonly id: number
  readonly handler: string
  readonly job: Json
  readonly key: string | undefined
  readonly priority: number
  state: "waiting" | "leased" | "dead"
  dueMs: number
  /** The number of runs that were started. */
  attempts: number
  error: string | undefined
}

/** The right to run one entry. It is void once another lease on the entry was granted. */
export interface Lease {
  readonly entry: Entry
  readonly leaseMs: number
  readonly maxAttempts: number
  untilMs: number
}

export interface NewEntry {
  readonly handler: string
  readonly job: Json
  readonly key: string | undefined
  readonly priority: number
  readonly dueMs: number
}

const backoffMs = (attempts: number): number => Math.min(1000 * 2 ** (attempts - 1), 300_000)

const before = (a: Entry, b: Entry): number =>
  b.priority - a.priority || a.dueMs - b.dueMs || a.id - b.id

/** Stands for the table of a real queue. */
export const makeEntries = (clock: Clock) => {
  const entries = new Set<Entry>()
  const leases = new Map<Entry, Lease>()
  let lastId = 0

  const holds = (lease: Lease): boolean => leases.get(lease.entry) === lease

  const putBack = ({ entry }: Lease, state: "waiting" | "dead", dueMs: number): void => {
    leases.delete(entry)
    entry.state = state
    entry.dueMs = dueMs
  }

  const failed = (lease: Lease, error: string, delayMs: number): void => {
    lease.entry.error = error
    putBack(
      lease,
      lease.entry.attempts >= lease.maxAttempts ? "dead" : "waiting",
      clock.nowMs() + delayMs,
    )
  }

  const isHeld = (handler: string, key: string): boolean =>
    [...entries].some(
      (entry) => entry.handler === handler && entry.key === key && entry.state !== "dead",
    )

  return {
    holds,
    isHeld,
    of: (state: Entry["state"]): readonly Entry[] =>
      [...entries].filter((entry) => entry.state === state),
    add: ({ handler, key, ...rest }: NewEntry): void => {
      if (key === undefined || !isHeld(handler, key))
        entries.add({
          ...rest,
          handler,
          key,
          id: ++lastId,
          state: "waiting",
          attempts: 0,
          error: undefined,
        })
    },
    claim: (handler: {
      readonly name: string
      readonly leaseMs: number
      readonly attempts: number
    }): Lease | undefined => {
      const due = [...entries].filter(
        (entry) =>
          entry.handler === handler.name &&
          entry.state === "waiting" &&
          entry.dueMs <= clock.nowMs(),
      )
      const entry = due.sort(before)[0]
      if (entry === undefined) return undefined
      const lease = {
        entry,
        leaseMs: handler.leaseMs,
        maxAttempts: handler.attempts,
        untilMs: clock.nowMs() + handler.leaseMs,
      }
      entry.state = "leased"
      entry.attempts++
      leases.set(entry, lease)
      return lease
    },
    renew: (lease: Lease): void => {
      lease.untilMs = clock.nowMs() + lease.leaseMs
    },
    expire: (): void => {
      for (const lease of leases.values())
        if (lease.untilMs <= clock.nowMs()) failed(lease, "its lease was lost", 0)
    },
    done: ({ entry }: Lease): void => {
      leases.delete(entry)
      entries.delete(entry)
    },
    failed: (lease: Lease, error: string): void =>
      failed(lease, error, backoffMs(lease.entry.attempts)),
    /** Being stopped is not a failure, so the run does not count as an attempt. */
    release: (lease: Lease): void => {
      lease.entry.attempts--
      putBack(lease, "waiting", clock.nowMs())
    },
  }
}
export type Entries = ReturnType<typeof makeEntries>
