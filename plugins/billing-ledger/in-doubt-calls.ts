import type { Settlement } from "../../core/index.ts"

export interface InDoubtCalls {
  readonly size: number
  /** Closes the call with this outcome from `dueMs` (Unix ms) on. */
  add(id: string, outcome: Settlement["outcome"], dueMs: number): void
  /** Removes and returns up to `max` calls that are due. */
  take(nowMs: number, max: number): readonly Settlement[]
}

/**
 * Calls whose admission lost its answer, because the connection broke: the statement may have been
 * committed, so the sweep closes them later. And those whose settlement the ledger refused. The
 * client saw a failure, so they cost nothing. Beyond `maxInDoubt` the oldest is dropped; it expires with its replica.
 */
export const makeInDoubtCalls = (maxInDoubt: number): InDoubtCalls => {
  const inDoubt = new Map<
    string,
    { readonly outcome: Settlement["outcome"]; readonly dueMs: number }
  >()
  return {
    get size() {
      return inDoubt.size
    },
    add: (id, outcome, dueMs) => {
      inDoubt.set(id, { outcome, dueMs })
      const [oldest] = inDoubt.keys()
      if (inDoubt.size > maxInDoubt && oldest !== undefined) inDoubt.delete(oldest)
    },
    take: (nowMs, max) => {
      const taken = [...inDoubt].filter(([, { dueMs }]) => dueMs <= nowMs).slice(0, max)
      for (const [id] of taken) inDoubt.delete(id)
      return taken.map(([id, { outcome }]) => ({
        id,
        outcome,
        costMicros: 0n,
        usage: {},
        httpStatus: 500,
      }))
    },
  }
}
