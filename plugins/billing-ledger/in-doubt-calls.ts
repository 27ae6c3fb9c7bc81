import type { Settlement } from "../../core/index.ts"

export interface Strays {
  readonly size: number
  add(id: string, outcome: Settlement["outcome"], dueMs: number): void
  /** Takes out what is due, up to `max`. */
  take(nowMs: number, max: number): readonly Settlement[]
}

/**
 * Calls whose admission or settlement ended without an answer (the connection was lost): their holds and slots may be taken for good, so
 * the sweeper closes them later. The customer saw a failure: they cost nothing. Beyond `maxStrays` the oldest is forgotten until its replica ends.
 */
export const makeStrays = (maxStrays: number): Strays => {
  const strays = new Map<
    string,
    { readonly outcome: Settlement["outcome"]; readonly dueMs: number }
  >()
  return {
    get size() {
      return strays.size
    },
    add: (id, outcome, dueMs) => {
      strays.set(id, { outcome, dueMs })
      const [oldest] = strays.keys()
      if (strays.size > maxStrays && oldest !== undefined) strays.delete(oldest)
    },
    take: (nowMs, max) => {
      const taken = [...strays].filter(([, { dueMs }]) => dueMs <= nowMs).slice(0, max)
      for (const [id] of taken) strays.delete(id)
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
