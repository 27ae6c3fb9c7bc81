import type { Stats } from "node:fs"
import { Data, Effect } from "effect"
import type { BatchError } from "../tables.ts"

/** The file can't be run, or its results can't be written. The message says what to do. */
export class BatchFileRefused extends Data.TaggedError("BatchFileRefused")<{
  readonly message: string
  readonly faults?: readonly BatchError[]
}> {}

export const refused = (message: string, faults?: readonly BatchError[]): BatchFileRefused =>
  new BatchFileRefused({ message, ...(faults && { faults }) })

/** A pipe is refused: it can be read only once, and a run could not resume from it. */
export const notRegular = (path: string, found: Stats): BatchFileRefused =>
  refused(
    `${path} is ${found.isDirectory() ? "a folder" : "no regular file"}; lines and results must lie in files.`,
  )

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file or folder",
  EISDIR: "it is a folder",
  ENOTDIR: "a part of its path is no folder",
  EACCES: "it may not be opened",
  ENOSPC: "the disk is full; free some space and go on with --resume",
  EDQUOT: "the quota of the disk is used up; free some space and go on with --resume",
}

export const fileRefused = (path: string, what: string, cause: unknown): BatchFileRefused => {
  const { code = "", message } = cause as NodeJS.ErrnoException
  return refused(`${path} can't be ${what}: ${reasons[code] ?? message}.`)
}

/** A file operation. Uninterruptible, so that a write is not cut in the middle. */
export const onFile = <A>(
  path: string,
  what: string,
  act: () => Promise<A>,
): Effect.Effect<A, BatchFileRefused> =>
  Effect.uninterruptible(
    Effect.tryPromise({ try: act, catch: (cause) => fileRefused(path, what, cause) }),
  )
