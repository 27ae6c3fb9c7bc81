import { randomUUID } from "node:crypto"
import { link, readFile, rm, stat, utimes, writeFile } from "node:fs/promises"
import { hostname } from "node:os"
import { setTimeout as sleep } from "node:timers/promises"
import { Result, Schema } from "effect"
import type { PullContext } from "../context.ts"
import { SourceFailed } from "../failure.ts"
import { isMissing, isSystemError } from "../system-error.ts"

const Holder = Schema.Struct({ pid: Schema.Int, host: Schema.String, token: Schema.String })
export type LockHolder = typeof Holder.Type
const decodeHolder = Schema.decodeUnknownResult(Schema.fromJsonString(Holder))

export interface FileLock {
  /** Aborts when another process took the lock over: then this one must not write any more. */
  readonly lost: AbortSignal
  release(): Promise<void>
}

export interface LockOptions {
  readonly context: PullContext
  readonly path: string
  readonly signal: AbortSignal
  /** At every look while another process holds it. */
  readonly onWait: (holder: LockHolder | undefined) => void | Promise<void>
}

/** What one look at the lock file showed. */
interface Sight {
  readonly text: string
  readonly mtimeMs: number
  readonly holder: LockHolder | undefined
}

/** Tokens of this process: a lock with our pid but without our token is left over from an earlier life (pids repeat in containers). */
const ourTokens = new Set<string>()

const look = async (path: string): Promise<Sight | undefined> => {
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

/** Appears with its content at once, because readers may come between `open` and `write`. */
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

const isDead = ({ holder }: Sight): boolean => {
  if (holder === undefined || holder.host !== hostname()) return false
  return holder.pid === process.pid ? !ourTokens.has(holder.token) : !processLives(holder.pid)
}

/** Two waiters must not both remove it: the second would remove the new lock of the first. A guard file lets one of them through at a time. Answers whether it was this one. */
const removeStale = async (
  path: string,
  seen: Sight,
  staleMs: number,
  nowMs: number,
): Promise<boolean> => {
  const guard = `${path}.takeover`
  if (!(await create(guard, ""))) {
    const old = await look(guard)
    if (old && nowMs - old.mtimeMs > staleMs) await rm(guard, { force: true })
    return false
  }
  try {
    const now = await look(path)
    if (now?.text === seen.text && now.mtimeMs === seen.mtimeMs) await rm(path, { force: true })
    return true
  } finally {
    await rm(guard, { force: true })
  }
}

const hold = ({ path, context }: LockOptions, token: string, text: string): FileLock => {
  const lost = new AbortController()
  ourTokens.add(token)
  const beat = async () => {
    const sight = await look(path).catch(() => undefined)
    if (sight?.text !== text)
      return lost.abort(new SourceFailed("another process took the download over", { retry: true }))
    const now = new Date(context.clock.nowMs())
    await utimes(path, now, now).catch(() => {})
  }
  const timer = setInterval(beat, context.timing.heartbeatMs)
  const release = async () => {
    clearInterval(timer)
    if ((await look(path))?.text === text) await rm(path, { force: true })
    ourTokens.delete(token)
  }
  return { lost: lost.signal, release }
}

/**
 * A lock between processes, by a file that names its holder and is touched while the holder lives. States: free -> held (file made) -> free (released),
 * held -> stale (the pid is dead, or no touch was seen for `staleMs`) -> free (taken over). Waits until it has the lock or `signal` aborts.
 */
export const acquireLock = async (options: LockOptions): Promise<FileLock> => {
  const { context, path, signal, onWait } = options
  const token = randomUUID()
  const text = JSON.stringify({ pid: process.pid, host: hostname(), token } satisfies LockHolder)
  let watched: { mtimeMs: number; sinceMs: number } | undefined
  for (;;) {
    signal.throwIfAborted()
    if (await create(path, text)) return hold(options, token, text)
    const sight = await look(path)
    if (sight === undefined) continue
    // seen change is compared, not the clocks of two machines
    const nowMs = context.clock.nowMs()
    if (watched?.mtimeMs !== sight.mtimeMs) watched = { mtimeMs: sight.mtimeMs, sinceMs: nowMs }
    if (isDead(sight) || nowMs - watched.sinceMs > context.timing.staleMs) {
      if (await removeStale(path, sight, context.timing.staleMs, nowMs)) continue
    } else await onWait(sight.holder)
    await sleep(context.timing.pollMs, undefined, { signal })
  }
}
