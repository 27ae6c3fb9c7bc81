import { randomBytes } from "node:crypto"
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { resolve } from "node:path"
import { Effect } from "effect"
import type { Log } from "../../../core/services/log.ts"
import { cannotStart } from "../failure.ts"
import { bootId, isAlive, startOf } from "./process-list.ts"

/** Locks that this process holds: its pid in a file may also be that of a dead process. */
const held = new Set<string>()

const read = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return undefined
  }
}

/** A process of this or an earlier boot, which may have had the same number. */
const identity = (pid: number): string => `${pid} ${startOf(pid)} ${bootId()}`

/** Earlier versions wrote no boot. */
const names = (content: string, pid: number): boolean =>
  content === identity(pid) || content === `${pid} ${startOf(pid)}`

/**
 * Returns the pid of the living process that holds the lock; the lock of a dead process does not
 * count.
 */
export const lockOwner = (path: string): number | undefined => {
  const content = read(path)
  const pid = Number(content?.split(" ")[0])
  if (content === undefined || !Number.isSafeInteger(pid) || pid < 1 || !isAlive(pid))
    return undefined
  if (pid === process.pid) return held.has(resolve(path)) ? pid : undefined
  return names(content, pid) ? pid : undefined
}

/**
 * A hard link creates the file atomically, and fails when it exists. Returns whether it was
 * created.
 */
const write = (path: string): boolean => {
  const draft = `${path}.${process.pid}-${randomBytes(4).toString("hex")}`
  writeFileSync(draft, identity(process.pid), { mode: 0o600 })
  try {
    linkSync(draft, path)
    return true
  } catch (error) {
    if (read(path) === undefined) throw error
    return false
  } finally {
    rmSync(draft, { force: true })
  }
}

/**
 * Moves the lock of a dead process away. If another process took the lock in between, that one was
 * moved, so it is put back.
 */
const removeStale = (path: string): void => {
  const stale = read(path)
  const aside = `${path}.stale-${process.pid}`
  try {
    renameSync(path, aside)
    if (read(aside) !== stale) linkSync(aside, path)
  } catch {
    // another process was faster; the next attempt to write shows which
  } finally {
    rmSync(aside, { force: true })
  }
}

const waitMs = 10_000
const pollMs = 50

/**
 * Waits for the process that holds the lock, at most 10 s: a killed one may need a moment to end.
 */
export const untilFree = (path: string, log: Log): Effect.Effect<void> =>
  Effect.gen(function* () {
    const owner = lockOwner(path)
    if (owner === undefined) return
    log.warn(
      "database.folder_in_use",
      "another server runs on this data folder; waiting up to 10 s for it to end",
      { pid: owner, lock: path },
    )
    for (let waited = 0; waited < waitMs && lockOwner(path) !== undefined; waited += pollMs)
      yield* Effect.sleep(pollMs)
  })

/**
 * One server at a time owns a data folder. States: free -> held -> free; held -> stale (its process
 * died) -> held by the next.
 * Returns the function that releases the lock. Throws a PluginError that names the process that
 * holds it.
 */
export const takeLock = (path: string): (() => void) => {
  const name = resolve(path)
  for (let tries = 0; tries < 10; tries += 1) {
    const owner = lockOwner(path)
    if (owner !== undefined)
      throw cannotStart(
        `another server (process ${owner}) runs on this data folder (${path}); stop it, or give this one another dataDir (RAKIT_DATA)`,
      )
    if (write(path)) {
      held.add(name)
      return () => {
        held.delete(name)
        if (read(path) === identity(process.pid)) rmSync(path, { force: true })
      }
    }
    removeStale(path)
  }
  throw cannotStart(`other servers start on this data folder at the same time (${path})`)
}
