import { spawnSync } from "node:child_process"
import { readFileSync, readlinkSync, realpathSync } from "node:fs"
import { basename } from "node:path"

const hasCode = (error: unknown, code: string) =>
  error instanceof Error && "code" in error && error.code === code

const proc = (pid: number, file: string): string | undefined => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8")
  } catch {
    return undefined
  }
}

/** The fields of `/proc/PID/stat` after the name, which is in parentheses and may have spaces. */
const statOf = (pid: number): readonly string[] => {
  const stat = proc(pid, "stat")
  return stat?.slice(stat.lastIndexOf(")") + 2).split(" ") ?? []
}

/**
 * Whether the process has ended and its parent has not asked how. Nothing of it runs any more, but
 * signals reach it.
 */
export const isZombie = (pid: number): boolean => ["Z", "X"].includes(statOf(pid)[0] ?? "")

const reaches = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return hasCode(error, "EPERM")
  }
}

export const isAlive = (pid: number): boolean => reaches(pid) && !isZombie(pid)

/** Returns the program of a process; undefined where the system has no such list. */
const programOf = (pid: number): string | undefined => {
  if (process.platform === "linux") return proc(pid, "cmdline")?.split("\0")[0]
  if (process.platform === "win32") return undefined
  return spawnSync("ps", ["-p", String(pid), "-o", "comm="], { encoding: "utf8" }).stdout?.trim()
}

/**
 * Returns the working folder of a process, which for PostgreSQL is its data folder; undefined where
 * the system has no such list.
 */
const worksIn = (pid: number, home: string): boolean | undefined => {
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(home)
  } catch {
    return undefined
  }
}

/**
 * Whether the pid now belongs to another program, as after a restart of a container, or to the
 * server of another data folder.
 */
export const isSurelyNotServerOf = (home: string, pid: number): boolean => {
  const program = programOf(pid)
  return (
    (!!program && !/^(postgres|postmaster)(\.exe)?$/.test(basename(program))) ||
    worksIn(pid, home) === false
  )
}

/**
 * Returns the start time of a process, in ticks since boot, which tells it from a later one with
 * the same pid. Empty where unknown.
 */
export const startOf = (pid: number): string => statOf(pid)[19] ?? ""

/** Tells this boot of the machine from others, as ticks begin anew. Empty where unknown. */
export const bootId = (): string => {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()
  } catch {
    return ""
  }
}

/** Sends a signal; does nothing when the process is gone. */
export const signal = (pid: number, name: NodeJS.Signals): void => {
  try {
    process.kill(pid, name)
  } catch (error) {
    if (!hasCode(error, "ESRCH")) throw error
  }
}
