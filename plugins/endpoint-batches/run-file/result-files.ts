import { type FileHandle, open } from "node:fs/promises"
import { Effect, type Scope } from "effect"
import type { Clock } from "../../../core/index.ts"
import { type BatchFileRefused, onFile } from "./refused.ts"

/** The output file or the error file. */
interface ResultFile {
  readonly path: string
  handle: FileHandle | undefined
  isDirty: boolean
}

export interface ResultFiles {
  /** Writes errors first. A line that is in neither file has no result. */
  append(
    output: readonly string[],
    errors: readonly string[],
  ): Effect.Effect<void, BatchFileRefused>
  /** Flushes what was appended to the disk. */
  readonly sync: Effect.Effect<void, BatchFileRefused>
}

export interface ResultTarget {
  readonly path: string
  /** Bytes of an earlier run that are kept. */
  readonly bytes: number
}

const syncPauseMs = 1_000

const cutTo = ({ path, bytes }: ResultTarget) =>
  onFile(path, "written", async () => {
    const handle = await open(path, "r+").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return undefined
      throw error
    })
    try {
      await handle?.truncate(bytes)
    } finally {
      await handle?.close()
    }
  })

/** Creates the file if needed, even without lines. */
const appendTo = (
  file: ResultFile,
  lines: readonly string[],
): Effect.Effect<void, BatchFileRefused> =>
  onFile(file.path, "written", async () => {
    file.handle ??= await open(file.path, "a")
    file.isDirty = true
    if (lines.length > 0) await file.handle.appendFile(`${lines.join("\n")}\n`)
  })

const sync = (file: ResultFile): Effect.Effect<void, BatchFileRefused> =>
  onFile(file.path, "written", async () => {
    if (file.isDirty) await file.handle?.sync()
    file.isDirty = false
  })

/**
 * Truncates the files to what is kept, and keeps them open until the Scope closes; the error file
 * is created with its first line. Lines are written at once, so that kill -9 loses none, and
 * flushed to the disk within a second.
 */
export const openResultFiles = (
  output: ResultTarget,
  errors: ResultTarget,
  clock: Clock,
): Effect.Effect<ResultFiles, BatchFileRefused, Scope.Scope> =>
  Effect.gen(function* () {
    const files: readonly [ResultFile, ResultFile] = [
      { path: output.path, handle: undefined, isDirty: false },
      { path: errors.path, handle: undefined, isDirty: false },
    ]
    yield* cutTo(output)
    yield* cutTo(errors)
    let syncedMs = clock.monotonicMs()
    const syncAll = Effect.andThen(sync(files[1]), sync(files[0]))
    const close = Effect.promise(async () => {
      for (const { handle } of files) await handle?.close().catch(() => {})
    })
    yield* Effect.addFinalizer(() => Effect.andThen(Effect.ignore(syncAll), close))
    yield* appendTo(files[0], [])
    return {
      sync: syncAll,
      append: (outputLines, errorLines) =>
        Effect.gen(function* () {
          if (errorLines.length > 0) yield* appendTo(files[1], errorLines)
          if (outputLines.length > 0) yield* appendTo(files[0], outputLines)
          if (clock.monotonicMs() - syncedMs < syncPauseMs) return
          yield* syncAll
          syncedMs = clock.monotonicMs()
        }),
    }
  })
