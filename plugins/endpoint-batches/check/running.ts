import { Effect } from "effect"
import type { Finding, PortError } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import type { PartRow } from "../tables.ts"
import { batchNow, type CheckedBatch, hasGoneOn, subjectOf } from "./checked-batch.ts"
import { countLines } from "./line-count.ts"

interface AnsweredCount {
  readonly output: number
  readonly error: number
  readonly problems: readonly string[]
}

const readPart = ({ storage }: BatchDeps, { kind, part, blob_key, bytes }: PartRow) =>
  countLines(storage, blob_key).pipe(
    Effect.map((counted) => ({
      lines: counted.lines,
      problem:
        BigInt(counted.bytes) === bytes
          ? undefined
          : `its ${kind} part ${part} (${blob_key}) has ${counted.bytes} bytes, not ${bytes}`,
    })),
    Effect.catchTag("BlobMissing", () =>
      Effect.succeed({
        lines: undefined,
        problem: `its ${kind} part ${part} (${blob_key}) is missing`,
      }),
    ),
  )

/** Counts the lines in the segments and in the reorder buffer. */
const answered = (
  deps: BatchDeps,
  { parts, lines, ok_lines }: CheckedBatch,
): Effect.Effect<AnsweredCount, PortError> =>
  Effect.gen(function* () {
    const counts = { output: ok_lines, error: lines - ok_lines }
    const problems: string[] = []
    let isWhole = true
    for (const part of parts) {
      const { lines: found, problem } = yield* readPart(deps, part)
      if (problem !== undefined) problems.push(problem)
      if (found === undefined) isWhole = false
      else counts[part.kind] += found
    }
    return {
      ...counts,
      problems: isWhole ? problems : [...problems, "so its lines can't be counted"],
    }
  })

/**
 * The counters of a running batch match its lines. Only its worker may change them, so nothing is
 * repaired.
 */
export const checkRunning = (
  deps: BatchDeps,
  row: CheckedBatch,
): Effect.Effect<readonly Finding[], PortError> =>
  Effect.gen(function* () {
    const found = yield* answered(deps, row)
    const problems = [...found.problems]
    if (problems.length === 0 && (found.output !== row.completed || found.error !== row.failed))
      problems.push(
        `it counts ${row.completed} answers and ${row.failed} failures; there are ${found.output} and ${found.error}`,
      )
    if (row.first_line !== null && row.first_line <= row.done_through)
      problems.push(
        `line ${row.first_line} waits for its part, but lines up to ${row.done_through} lie in parts`,
      )
    if (problems.length === 0 || hasGoneOn(row, yield* batchNow(deps, row.id))) return []
    return problems.map((problem) => ({ subject: subjectOf(row), problem }))
  })
