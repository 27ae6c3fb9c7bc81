import { Effect, Result, Stream } from "effect"
import type { PortError, StoredFile } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import { jsonLines } from "../input/json-lines.ts"
import { CustomIds } from "../preflight/custom-ids.ts"
import type { BatchRow } from "../tables.ts"
import { lineId } from "../work/result-line.ts"
import { readErrors } from "./line-count.ts"

/** An answer may be longer than a line of input; one longer than this is not parsed. */
const maxLineBytes = 64 * 2 ** 20
/** How many blank lines the input may have: they have a number, and no answer. */
const blanksAllowed = 200_000

/** The lines found so far in both files of a batch. */
export interface SeenLines {
  /** Numbers of lines of the input. */
  readonly lines: Set<number>
  readonly customIds: CustomIds
}

export const nothingSeen = (): SeenLines => ({ lines: new Set(), customIds: new CustomIds() })

interface Ids {
  readonly id: unknown
  readonly custom_id: unknown
}

const parse = (text: string): Ids | undefined =>
  Result.getOrUndefined(Result.try(() => JSON.parse(text) as Ids))

/** Ids are made from line numbers, so the order can be checked without the input. */
const makeLineFinder = ({ id, total }: BatchRow) => {
  let line = 0
  const findIn = (wanted: unknown, from: number, to: number): number | undefined => {
    for (let next = from; next <= to; next++) if (lineId(id, next) === wanted) return next
    return undefined
  }
  /**
   * Returns the line with this id, if it comes after the last one; searches the likely lines first.
   */
  return (wanted: unknown): number | undefined => {
    const near = findIn(wanted, line + 1, total)
    const found =
      near ??
      (findIn(wanted, 1, Math.min(line, total)) === undefined
        ? findIn(wanted, Math.max(line, total) + 1, total + blanksAllowed)
        : undefined)
    if (found !== undefined) line = found
    return found
  }
}

/**
 * The first bad line, or a wrong number of lines. Undefined: no problem, or the file was deleted
 * meanwhile.
 */
export const problemOfFile = (
  deps: BatchDeps,
  row: BatchRow,
  file: StoredFile,
  wanted: number,
  seen: SeenLines,
): Effect.Effect<string | undefined, PortError> =>
  Effect.suspend(() => {
    const findLine = makeLineFinder(row)
    let count = 0
    let problem: string | undefined
    const problemOf = (text: string): string | undefined => {
      const ids = parse(text)
      if (typeof ids !== "object" || ids === null) return `line ${count} is not JSON`
      const line = findLine(ids.id)
      if (line === undefined)
        return `line ${count} is of no later line of the input than the one before it`
      if (seen.lines.has(line))
        return `line ${count} answers line ${line} of the input, which was answered before`
      seen.lines.add(line)
      const isTwice =
        typeof ids.custom_id === "string" && seen.customIds.add(ids.custom_id, line) !== undefined
      return isTwice ? `line ${count} has a custom_id that came before` : undefined
    }
    return jsonLines(deps.files.read(file), { maxLineBytes }).pipe(
      // the search for an unknown id takes long, so the first problem ends the check
      Stream.runForEachWhile(({ text }) =>
        Effect.sync(() => {
          count++
          problem = text === undefined ? undefined : problemOf(text)
          return problem === undefined
        }),
      ),
      Effect.map(
        () => problem ?? (count === wanted ? undefined : `it has ${count} lines, not ${wanted}`),
      ),
      Effect.catch(readErrors),
      // another check reports the missing blob
      Effect.catchTag("BlobMissing", () => Effect.succeed(undefined)),
    )
  })
