import { readdirSync, readFileSync } from "node:fs"

/** In MB (2^20 bytes); NaN where the system does not tell. */
export interface Memory {
  /** Resident pages of the process itself, shared libraries included. */
  readonly rssMb: number
  /**
   * Proportional set size of the process tree: pages shared by n processes count 1/n in each, so
   * the sum is the real memory.
   */
  readonly treePssMb: number
  /** PostgreSQL's share of the process tree. */
  readonly postgresPssMb: number
}

const readText = (file: string): string => {
  try {
    return readFileSync(file, "utf8")
  } catch {
    return ""
  }
}

const field = (text: string, name: string): number =>
  Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? Number.NaN) / 1024

const pssOf = (pid: number): number => field(readText(`/proc/${pid}/smaps_rollup`), "Pss")
const nameOf = (pid: number): string => readText(`/proc/${pid}/comm`).trim()
const parentOf = (pid: number): number =>
  Number(/^PPid:\s+(\d+)/m.exec(readText(`/proc/${pid}/status`))?.[1] ?? 0)

const treeOf = (root: number): readonly number[] => {
  const all = readdirSync("/proc").map(Number).filter(Number.isInteger)
  const parents = new Map(all.map((pid) => [pid, parentOf(pid)]))
  const isBelow = (pid: number): boolean =>
    pid === root || (parents.has(pid) && isBelow(parents.get(pid)!))
  return all.filter(isBelow)
}

const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0)

/** Resident memory of one process, in MB; cheap. Linux only. */
export const residentMb = (pid: number): number =>
  process.platform === "linux" ? field(readText(`/proc/${pid}/status`), "VmRSS") : Number.NaN

/** Linux only. */
export const memoryOf = (pid: number): Memory => {
  if (process.platform !== "linux")
    return { rssMb: Number.NaN, treePssMb: Number.NaN, postgresPssMb: Number.NaN }
  const tree = treeOf(pid)
  return {
    rssMb: residentMb(pid),
    treePssMb: sum(tree.map(pssOf)),
    postgresPssMb: sum(tree.filter((one) => nameOf(one) === "postgres").map(pssOf)),
  }
}
