import { randomUUID } from "node:crypto"
import { readlinkSync } from "node:fs"
import { link, readFile, rm, stat, utimes, writeFile } from "node:fs/promises"
import { hostname } from "node:os"
import { setTimeout as sleep } from "node:timers/promises"
import { Result, Schema } from "effect"
import type { PullContext } from "../context.ts"
import { SourceFailed } from "../failure.ts"
import { isMissing, isSystemError } from "../system-error.ts"

const Holder = Schema.Struct({
  pid: Schema.Int,
  host: Schema.String,
  /** Absent: from an earlier version. */
  pids: Schema.optionalKey(Schema.String),
  token: Schema.String,
})
export type LockHolder = typeof Holder.Type
const decodeHolder = Schema.decodeUnknownResult(Schema.fromJsonString(Holder))

export interface FileLock {
  /** Aborts when another process has taken the lock over: this one must stop writing. */
  readonly lost: AbortSignal
  release(): Promise<void>
}

export interface LockOptions {
  readonly context: Pick<PullContext, "clock" | "timing">
  readonly path: string
  readonly signal?: AbortSignal
  /** Called at every check while another process holds it. */
  readonly onWait?: (holder: LockHolder | undefined) => void | Promise<void>
}

/** The lock file as it was read. */
interface LockState {
  readonly text: string
  readonly mtimeMs: number
  readonly holder: LockHolder | undefined
}

/**
 * Tokens of this process. A lock with our pid but another token is stale: pids repeat in
 * containers.
 */
const ourTokens = new Set<string>()

const readLock = async (path: string): Promise<LockState | undefined> => {
  try {
    const [text, { mtimeMs }] = [await readFile(path, "utf8"), await stat(path)]
    const decoded = decodeHolder(text)
    return { text, mtimeMs, holder: Result.isSuccess(decoded) ? decoded.success : undefined }
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

const withoutLinks = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"])

const createPlainly = async (path: string, text: string): Promise<boolean> => {
  try {
    await writeFile(path, text, { flag: "wx" })
    return true
  } catch (error) {
    if (isSystemError(error) && error.code === "EEXIST") return false
    throw error
  }
}

/**
 * Creates the file with its content in one step, as a reader may come between `open` and `write`.
 * Returns false if it exists.
 */
const create = async (path: string, text: string): Promise<boolean> => {
  const whole = `${path}.${randomUUID()}`
  await writeFile(whole, text)
  try {
    await link(whole, path)
    return true
  } catch (error) {
    if (isSystemError(error) && error.code === "EEXIST") return false
    if (isSystemError(error) && withoutLinks.has(error.code)) return createPlainly(path, text)
    throw error
  } finally {
    await rm(whole, { force: true })
  }
}

const processLives = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return isSystemError(error) && error.code === "EPERM"
  }
}

/**
 * What a pid is unique in: on Linux the namespace of pids, as containers may share a host name and
 * each have a process 1.
 */
export const pidSpace = (): string => {
  try {
    return readlinkSync("/proc/self/ns/pid")
  } catch {
    return ""
  }
}

const isDead = ({ holder }: LockState): boolean => {
  if (holder?.host !== hostname() || holder.pids !== pidSpace()) return false
  return holder.pid === process.pid ? !ourTokens.has(holder.token) : !processLives(holder.pid)
}

/**
 * Removes a stale lock. Of two waiters, the second would remove the new lock of the first: a guard
 * file lets one of them
 * through at a time. Returns whether this one was.
 */
const removeStale = async (
  path: string,
  seen: LockState,
  staleMs: number,
  nowMs: number,
): Promise<boolean> => {
  const guard = `${path}.takeover`
  if (!(await create(guard, ""))) {
    const old = await readLock(guard)
    if (old && nowMs - old.mtimeMs > staleMs) await rm(guard, { force: true })
    return false
  }
  try {
    const now = await readLock(path)
    if (now?.text === seen.text && now.mtimeMs === seen.mtimeMs) await rm(path, { force: true })
    return true
  } finally {
    await rm(guard, { force: true })
  }
}

const holdLock = ({ path, context }: LockOptions, token: string, text: string): FileLock => {
  const lost = new AbortController()
  const beat = async () => {
    const state = await readLock(path).catch(() => undefined)
    if (state?.text !== text)
      return lost.abort(new SourceFailed("another process took the download over", { retry: true }))
    const now = new Date(context.clock.nowMs())
    await utimes(path, now, now).catch(() => {})
  }
  const timer = setInterval(beat, context.timing.heartbeatMs)
  const release = async () => {
    clearInterval(timer)
    if ((await readLock(path))?.text === text) await rm(path, { force: true })
    ourTokens.delete(token)
  }
  return { lost: lost.signal, release }
}

const waitForLock = async (options: LockOptions, token: string): Promise<FileLock> => {
  const { context, path, signal, onWait } = options
  const holder = { pid: process.pid, host: hostname(), pids: pidSpace(), token }
  const text = JSON.stringify(holder satisfies LockHolder)
  let watched: { mtimeMs: number; sinceMs: number } | undefined
  for (;;) {
    signal?.throwIfAborted()
    if (await create(path, text)) return holdLock(options, token, text)
    const state = await readLock(path)
    if (state === undefined) continue
    // counted from when the change was seen, as the clocks of two machines differ
    const nowMs = context.clock.nowMs()
    if (watched?.mtimeMs !== state.mtimeMs) watched = { mtimeMs: state.mtimeMs, sinceMs: nowMs }
    if (isDead(state) || nowMs - watched.sinceMs > context.timing.staleMs) {
      if (await removeStale(path, state, context.timing.staleMs, nowMs)) continue
    } else await onWait?.(state.holder)
    await sleep(context.timing.pollMs, undefined, signal && { signal })
  }
}

/**
 * A lock between processes: a file that names its holder, who touches it. States: free -> held
 * (file made) -> free (released),
 * held -> stale (the pid is dead, or the file was not touched for `staleMs`) -> free (taken over).
 * Waits until it has the lock
 * or `signal` aborts.
 */
export const acquireLock = async (options: LockOptions): Promise<FileLock> => {
  const token = randomUUID()
  // before the file exists: another waiter of this process would take a lock with an unknown token
  // for stale
  ourTokens.add(token)
  try {
    return await waitForLock(options, token)
  } catch (error) {
    ourTokens.delete(token)
    throw error
  }
}
