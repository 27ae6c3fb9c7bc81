import { Effect, Stream } from "effect"
import { PortError, type StorageError, type StoredFile } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import { type InputLine, isBatchError, readInputLine } from "../input/input-line.ts"
import { jsonLines, type RawLine } from "../input/json-lines.ts"
import type { BatchError } from "../tables.ts"
import { CustomIds } from "./custom-ids.ts"
import { Faults } from "./faults.ts"

/** A further check of a line of the right shape. */
export type LineCheck<E> = (
  line: InputLine,
  raw: RawLine,
) => Effect.Effect<BatchError | undefined, E>

export interface Scan {
  /** Without blank ones. */
  readonly lines: number
  readonly faults: Faults
}

/** The event loop gets a turn at least this often, as lines may be long. */
const turnMs = 10

const nextTurn = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))

const makeYield = ({ clock }: BatchDeps): Effect.Effect<void> => {
  let sinceMs = clock.monotonicMs()
  const noteTurn = () => {
    sinceMs = clock.monotonicMs()
  }
  return Effect.suspend(() =>
    clock.monotonicMs() - sinceMs < turnMs ? Effect.void : Effect.map(nextTurn, noteTurn),
  )
}

export const fileGone = (): BatchError => ({
  code: "not_found",
  message: "The input file is not there any more.",
  line: null,
  param: "input_file_id",
})

const emptyFile = (): BatchError => ({
  code: "empty_file",
  message: "The input file holds no line.",
  line: null,
  param: "input_file_id",
})

const tooManyLines = (maxLines: number, line: number): BatchError => ({
  code: "too_many_lines",
  message: `The input file has more than ${maxLines.toLocaleString("en")} lines, the limit.`,
  line,
  param: "input_file_id",
})

export const sameId = (line: number, earlier: number): BatchError => ({
  code: "duplicate_custom_id",
  message: `custom_id: lines ${earlier} and ${line} have the same one`,
  line,
  param: "custom_id",
})

/**
 * Calls `isGone` where the file does not exist any more; other failures of the store are no fault
 * of the input.
 */
const contentOf = (
  { files }: BatchDeps,
  file: StoredFile,
  isGone: () => void,
): Stream.Stream<Uint8Array, PortError> =>
  files.read(file).pipe(
    Stream.catch((error: StorageError) => {
      if (error._tag === "PortError") return Stream.fail(error)
      if (error._tag !== "BlobMissing")
        return Stream.fail(
          new PortError({ port: "storage", message: `the input can't be read: ${error._tag}` }),
        )
      isGone()
      return Stream.empty
    }),
  )

/** Reads the whole input once, with one line in memory at a time. */
export const scan = <E>(
  deps: BatchDeps,
  file: StoredFile,
  endpoint: string,
  check: LineCheck<E>,
): Effect.Effect<Scan, E | PortError> => {
  const { maxLines, maxLineBytes } = deps.limits
  const faults = new Faults()
  const ids = new CustomIds()
  const yieldTurn = makeYield(deps)
  let lines = 0
  let isGone = false

  const look = (raw: RawLine): Effect.Effect<boolean, E> => {
    if (isGone) return Effect.succeed(false)
    lines += 1
    if (lines > maxLines) {
      faults.add(tooManyLines(maxLines, raw.line))
      return Effect.succeed(false)
    }
    const line = readInputLine(raw, endpoint)
    if (isBatchError(line)) {
      faults.add(line)
      return Effect.as(yieldTurn, true)
    }
    const earlier = ids.add(line.customId, raw.line)
    const closer =
      earlier === undefined ? check(line, raw) : Effect.succeed(sameId(raw.line, earlier))
    return Effect.flatMap(closer, (fault) => {
      if (fault) faults.add(fault)
      return Effect.as(yieldTurn, true)
    })
  }

  const content = contentOf(deps, file, () => {
    isGone = true
  })
  return Effect.map(Stream.runForEachWhile(jsonLines(content, { maxLineBytes }), look), () => {
    if (isGone) faults.add(fileGone())
    else if (lines === 0) faults.add(emptyFile())
    return { lines, faults }
  })
}
