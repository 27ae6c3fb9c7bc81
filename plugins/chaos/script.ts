import type { Fault, Port } from "./settings.ts"

/**
 * A generator of numbers in [0, 1) for a seed (mulberry32 by Tommy Ettinger, in the public domain).
 */
export const seeded = (seed: number): (() => number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** These run once, at the start: they have a fault only where it names them. */
const ofTheStart: ReadonlySet<string> = new Set(["migrate", "consume"])

const concerns = (fault: Fault, port: Port, operation: string): boolean =>
  fault.port === port &&
  (fault.operation === "" ? !ofTheStart.has(operation) : fault.operation === operation)

/** Says which fault a call has, if any. */
export type NextFault = (port: Port, operation: string) => Fault | undefined

/**
 * Each fault counts the calls that it concerns, and those that had it. Until the plugins have
 * started only those of the start itself, and of models, count.
 */
export const makeScript = (
  faults: readonly Fault[],
  seed: number,
  hasStarted: () => boolean = () => true,
): NextFault => {
  const states = faults.map((fault, at) => ({
    fault,
    // of its own: the calls of other ports, in any order, change nothing
    random: seeded(seed + at * 7919),
    calls: 0,
    fired: 0,
  }))
  return (port, operation) => {
    if (port !== "model" && !ofTheStart.has(operation) && !hasStarted()) return undefined
    let due: Fault | undefined
    for (const state of states) {
      const { fault } = state
      if (!concerns(fault, port, operation)) continue
      const isDue =
        state.calls++ >= fault.after &&
        (fault.times === 0 || state.fired < fault.times) &&
        state.random() < fault.probability
      if (!isDue || due) continue
      state.fired++
      due = fault
    }
    return due
  }
}
