import { readFileSync } from "node:fs"

/** 0 when the process has ended. */
const residentBytes = (pid: string): number => {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8")
    return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) * 1024
  } catch {
    return 0
  }
}

/** The resident bytes of each process that the main thread has started (Linux). */
export const childrenBytes = (): readonly number[] =>
  readFileSync(`/proc/${process.pid}/task/${process.pid}/children`, "utf8")
    .trim()
    .split(" ")
    .filter(Boolean)
    .map(residentBytes)
