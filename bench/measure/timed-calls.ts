import { readFileSync } from "node:fs"
import { median } from "./rounds.ts"

/** One way to make a call, one call at a time. */
export interface Side {
  readonly name: string
  call(): Promise<unknown>
  /**
   * CPU time so far of the process that does the work, in µs; `undefined` where the system does not
   * report it.
   */
  cpuUs(): number | undefined
}

export interface CallTimes {
  /** Median time of one call. */
  readonly wallUs: number
  /** Mean CPU time of one call; NaN where it is not known. Excludes the load of other processes. */
  readonly cpuUs: number
}

export const ownCpuUs = (): number => {
  const { user, system } = process.cpuUsage()
  return user + system
}

const usPerTick = 10_000 // USER_HZ is 100 on every Linux

/**
 * CPU time of another process: Linux only, in steps of 10 ms (proc(5), `stat`: fields 14 and 15,
 * counted after the name).
 */
export const cpuUsOf = (pid: number): number | undefined => {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8")
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ")
    return (Number(fields[11]) + Number(fields[12])) * usPerTick
  } catch {
    return undefined
  }
}

const childrenOf = (pid: number): readonly number[] => {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
    return text.split(" ").filter(Boolean).map(Number)
  } catch {
    return []
  }
}

/** The CPU time of a process and its children, as PostgreSQL has one for each connection. */
export const cpuUsOfAll = (pid: number): number =>
  [pid, ...childrenOf(pid)].reduce((sum, one) => sum + (cpuUsOf(one) ?? 0), 0)

/** Warms up with sixteen calls at a time: one at a time would make too few for the JIT. */
export const warmUp = async (side: Side, ms: number): Promise<void> => {
  const untilMs = performance.now() + ms
  const loop = async () => {
    while (performance.now() < untilMs) await side.call()
  }
  await Promise.all(Array.from({ length: 16 }, loop))
}

/** Repeats the call for `ms`, at least three times. */
export const timeCalls = async (side: Side, ms: number): Promise<CallTimes> => {
  const walls: number[] = []
  const cpuBefore = side.cpuUs() ?? Number.NaN
  const untilMs = performance.now() + ms
  do {
    const startedMs = performance.now()
    await side.call()
    walls.push((performance.now() - startedMs) * 1000)
  } while (performance.now() < untilMs || walls.length < 3)
  return { wallUs: median(walls), cpuUs: ((side.cpuUs() ?? Number.NaN) - cpuBefore) / walls.length }
}
