import type { Clock, Log, ModelId } from "../../../core/index.ts"

export type Fetch = typeof globalThis.fetch
export type Env = Readonly<Record<string, string | undefined>>

export interface PullTiming {
  /** A connection that delivers nothing for this long is broken. */
  readonly stallMs: number
  /** The pause before the first retry; it doubles with each. */
  readonly backoffMs: number
  /** Interval at which the holder of a lock touches its file. */
  readonly heartbeatMs: number
  /** A lock file that was not touched for this long may be taken over. */
  readonly staleMs: number
  /** Interval at which a waiter checks the lock. */
  readonly pollMs: number
  /** At most one progress report in this interval. */
  readonly reportMs: number
}

export const defaultTiming: PullTiming = {
  stallMs: 30_000,
  backoffMs: 500,
  heartbeatMs: 2_000,
  staleMs: 30_000,
  pollMs: 250,
  reportMs: 100,
}

/** What a source without a digest of its own had at its first pull. */
export interface LockedSource {
  /** As the config file has it. */
  readonly url: string
  /** The commit of a hub's repository. */
  readonly commit?: string | undefined
  readonly sha256: string
}

/** The lock file of a deployment. */
export interface SourceLock {
  readonly file: string
  find(url: string): LockedSource | undefined
  /**
   * Adds it where the file has nothing of this URL, and returns what the file has then: another
   * process may have been first. Rejects when the file can't be written.
   */
  add(model: ModelId, source: LockedSource): Promise<LockedSource>
  /** Replaces what it has of this URL, if that differs. Rejects when the file can't be written. */
  keep(model: ModelId, source: LockedSource): Promise<void>
}

/** What every step of a pull needs. */
export interface PullContext {
  readonly modelsDir: string
  readonly log: Log
  readonly clock: Pick<Clock, "nowMs">
  readonly fetch: Fetch
  readonly env: Env
  readonly cwd: string
  readonly timing: PullTiming
  /** Returns the free bytes on the disk of this folder. */
  readonly freeBytes: (folder: string) => Promise<number>
  /** Without one, the cache alone remembers what a source had. */
  readonly lock: SourceLock | undefined
  /** True: sources without a digest are asked again, whatever lock and cache have. */
  readonly isRenewal: boolean
}

/** `totalBytes` is undefined until the server announces it. */
export type Report = (doneBytes: number, totalBytes: number | undefined) => void
