import { readFileSync } from "node:fs"
import { join } from "node:path"

export interface PidFile {
  readonly pid: number
  readonly port: number
}

const lineOf = { pid: 0, port: 3 }

/**
 * `postmaster.pid` (src/include/miscadmin.h of PostgreSQL): pid, folder, start time, port, socket
 * folder, address, shared memory, status; the last ones are written later.
 */
export const parsePidFile = (text: string): PidFile | undefined => {
  const lines = text.split("\n")
  const pid = Number(lines[lineOf.pid])
  const port = Number(lines[lineOf.port])
  const valid =
    Number.isSafeInteger(pid) && pid > 1 && Number.isInteger(port) && port > 0 && port < 65_536
  return valid ? { pid, port } : undefined
}

export const pidFilePath = (home: string): string => join(home, "postmaster.pid")

/** Returns undefined when there is none, or it is only half written. */
export const readPidFile = (home: string): PidFile | undefined => {
  try {
    return parsePidFile(readFileSync(pidFilePath(home), "utf8"))
  } catch {
    return undefined
  }
}
