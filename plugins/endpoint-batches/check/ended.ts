import { Effect } from "effect"
import type { Finding, PortError, StorageError } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import type { BatchRow } from "../tables.ts"
import { dropResults } from "../work/sweep.ts"
import { type CheckedBatch, subjectOf } from "./checked-batch.ts"
import { nothingSeen, problemOfFile, type SeenLines } from "./result-file.ts"

/** A running server has swept by then. */
const leftoverMs = 2 * 3_600_000

const onlyPortError = (error: StorageError): Effect.Effect<never, PortError> =>
  error._tag === "PortError" ? Effect.fail(error) : Effect.die(error)

/** For this long after its end a batch's file is known, even when it was deleted. */
const knownMs = 29 * 86_400_000

const tenantOf = ({ account, mode }: BatchRow) => ({ account, mode })

/** Whether a file is missing that was neither deleted by its owner nor expired. */
const isLost = (deps: BatchDeps, row: BatchRow, id: string): Effect.Effect<boolean, PortError> =>
  (row.ended_at?.getTime() ?? 0) < deps.clock.nowMs() - knownMs
    ? Effect.succeed(false)
    : Effect.map(deps.files.knows(tenantOf(row), id), (isKnown) => !isKnown)

const checkFile = (
  deps: BatchDeps,
  row: BatchRow,
  kind: "output" | "error",
  seen: SeenLines,
): Effect.Effect<readonly string[], PortError> =>
  Effect.gen(function* () {
    const [id, wanted] =
      kind === "output" ? [row.output_file_id, row.completed] : [row.error_file_id, row.failed]
    if (id === null)
      return wanted > 0 ? [`${wanted} lines went to its ${kind} file, but it has none`] : []
    const file = yield* deps.files.find(tenantOf(row), id)
    if (!file)
      return (yield* isLost(deps, row, id))
        ? [
            `its ${kind} file ${id} is not among the files of its account, and nobody deleted it there`,
          ]
        : []
    const problem = yield* problemOfFile(deps, row, file, wanted, seen)
    // it may have been deleted while it was read
    if (problem === undefined || !(yield* deps.files.find(tenantOf(row), id))) return []
    return [`its ${kind} file ${id}: ${problem}`]
  })

const leftovers = (deps: BatchDeps, row: CheckedBatch): readonly Finding[] => {
  if (
    row.lines + row.parts.length === 0 ||
    (row.ended_at?.getTime() ?? 0) > deps.clock.nowMs() - leftoverMs
  )
    return []
  const repair = Effect.catch(dropResults(deps, row.id), onlyPortError)
  return [
    {
      subject: subjectOf(row),
      problem: `it is over, and ${row.lines} lines and ${row.parts.length} parts of it are left`,
      remedy: "they are removed",
      repair,
    },
  ]
}

/**
 * The files of an ended batch hold each answered line once, in order of the input. They belong to
 * the customer, so they are not repaired.
 */
export const checkEnded = (
  deps: BatchDeps,
  row: CheckedBatch,
): Effect.Effect<readonly Finding[], PortError> =>
  Effect.gen(function* () {
    const problems: string[] = []
    if (row.status === "completed" && row.completed + row.failed !== row.total)
      problems.push(
        `it is completed with ${row.completed} answers and ${row.failed} failures of ${row.total} lines`,
      )
    if (row.status === "completed" || row.status === "expired") {
      const seen = nothingSeen()
      for (const kind of ["output", "error"] as const)
        problems.push(...(yield* checkFile(deps, row, kind, seen)))
    }
    return [
      ...problems.map((problem) => ({ subject: subjectOf(row), problem })),
      ...leftovers(deps, row),
    ]
  })
