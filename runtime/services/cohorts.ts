import { Effect } from "effect"

/**
 * Requests that are being served at once, in cohorts: those that reach a stage in the same turn of
 * the event loop go through the next one together, one right after the other. The code of a stage
 * and its data then are in the caches of the processor for all but the first of them, where whole
 * requests, one after the other, would each load all of it again: see Larus and Parkes, "Using
 * cohort scheduling to enhance server performance" (USENIX, 2002). Replies that leave together also
 * wake a client less often, which for one reply alone takes as long as writing it.
 */
export interface Cohorts {
  /** Calls `next` with the others, where there are some; at once where there are few. */
  go(next: () => void): void
  /** The same for a fiber. */
  readonly join: Effect.Effect<void>
}

/** With fewer requests than this there is hardly anybody to wait for. */
const fewest = 4

/** A cohort that takes longer lets the event loop do something else in between. */
const sliceMs = 5

/** `served`: how many requests are being served. */
export const makeCohorts = (
  served: () => number,
  nowMs: () => number = () => performance.now(),
): Cohorts => {
  let waiting: (() => void)[] = []
  let isDue = false
  const goOn = () => {
    const cohort = waiting
    const untilMs = nowMs() + sliceMs
    let at = 0
    waiting = []
    isDue = false
    try {
      do cohort[at++]!()
      while (at < cohort.length && nowMs() < untilMs)
    } finally {
      // who threw is left behind, and keeps no other from going on
      if (at < cohort.length) add(...cohort.slice(at), ...waiting.splice(0))
    }
  }
  const add = (...more: readonly (() => void)[]) => {
    waiting.push(...more)
    if (!isDue) setImmediate(goOn)
    isDue = true
  }
  const go = (next: () => void) => (served() < fewest ? next() : add(next))
  return { go, join: Effect.callback<void>((resume) => go(() => resume(Effect.void))) }
}
