import { Effect, Result, Stream } from "effect"
import type { PortError, StoredFile } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import { jsonLines } from "../input/json-lines.ts"
import { CustomIds } from "../preflight/custom-ids.ts"
import type { BatchRow } from "../tables.ts"
import { lineId } from "../work/result-line.ts"
import { readErrors } from "./line-count.ts"

/** An answer may be longer than a line of input. What is longer than this is only counted. */
const maxLineBytes = 64 * 2 ** 20
/** Blank lines of the input have a number and no answer. */
const blanksAllowed = 200_000

/** What was seen in the files of one batch, of both together. */
export interface Seen {
  /** Lines of the input, a bit each. */
  readonly lines: Set<number>
  readonly customIds: CustomIds
}

export const nothingSeen = (): Seen => ({ lines: new Set(), customIds: new CustomIds() })

interface Ids {
  readonly id: unknown
  readonly custom_id: unknown
}

const parse = (text: string): Ids | undefined =>
  Result.getOrUndefined(Result.try(() => JSON.parse(text) as Ids))

/** Ids come from the numbers of lines, so the input is not needed to see whether its order was kept. */
const makeOrder = ({ id, total }: BatchRow) => {
  let line = 0
  const findIn = (wanted: unknown, from: number, to: number): number | undefined => {
    for (let next = from; next <= to; next++) if (lineId(id, next) === wanted) return next
    return undefined
  }
  /** The line of the input, if it comes after the last one; looks where it should be before it looks where it may be. */
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

/** What is wrong with the first bad line, or with the number of lines; undefined: nothing, or the file was deleted meanwhile. */
export const problemOfFile = (
  deps: BatchDeps,
  row: BatchRow,
  file: StoredFile,
  wanted: number,
  seen: Seen,
): Effect.Effect<string | undefined, PortError> =>
  Effect.suspend(() => {
    const place = makeOrder(row)
    let count = 0
    let problem: string | undefined
    const problemOf = (text: string): string | undefined => {
      const ids = parse(text)
      if (typeof ids !== "object" || ids === null) return `line ${count} is not JSON`
      const line = place(ids.id)
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
      // the place of a line that has none is looked for long, so the first one ends it
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
      // its row is another check's affair
      Effect.catchTag("BlobMissing", () => Effect.succeed(undefined)),
    )
  })
