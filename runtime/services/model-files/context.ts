import type { Clock, Log } from "../../../core/index.ts"

export type Fetch = typeof globalThis.fetch
export type Env = Readonly<Record<string, string | undefined>>

export interface PullTiming {
  /** A connection without bytes for so long is broken. */
  readonly stallMs: number
  /** The first pause before a retry; it doubles. */
  readonly backoffMs: number
  /** How often the holder of a lock shows that it lives. */
  readonly heartbeatMs: number
  /** A lock without a sign of life for so long is free to take. */
  readonly staleMs: number
  /** How often a waiter looks at the lock. */
  readonly pollMs: number
  /** At most one progress report in so long. */
  readonly reportMs: number
}

export const usualTiming: PullTiming = {
  stallMs: 30_000,
  backoffMs: 500,
  heartbeatMs: 2_000,
  staleMs: 30_000,
  pollMs: 250,
  reportMs: 100,
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
  /** Free bytes on the disk of this folder. */
  readonly freeBytes: (folder: string) => Promise<number>
}

/** `totalBytes` is unknown while the server has not said. */
export type Report = (doneBytes: number, totalBytes: number | undefined) => void
