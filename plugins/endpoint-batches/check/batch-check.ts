import { Effect } from "effect"
import {
  type ConsistencyCheck,
  type Finding,
  inPages,
  type PortError,
} from "../../../core/index.ts"
import { batchPage, type CheckDeps, type CheckedBatch, subjectOf } from "./checked-batch.ts"
import { checkEnded } from "./ended.ts"
import { checkMoney } from "./money.ts"
import { checkRunning } from "./running.ts"

/** A running worker ends an expired batch within seconds. */
const overdueMs = 3_600_000

const checkOverdue = ({ clock }: CheckDeps, row: CheckedBatch): readonly Finding[] =>
  row.deadline_at.getTime() > clock.nowMs() - overdueMs
    ? []
    : [
        {
          subject: subjectOf(row),
          problem: `it is still ${row.status}, but its time was over at ${row.deadline_at.toISOString()}: no worker has ended it`,
        },
      ]

const checkOne = (
  deps: CheckDeps,
  row: CheckedBatch,
): Effect.Effect<readonly Finding[], PortError> => {
  if (row.ended_at !== null) return checkEnded(deps, row)
  const overdue = checkOverdue(deps, row)
  return row.status === "in_progress"
    ? Effect.map(checkRunning(deps, row), (found) => [...overdue, ...found])
    : Effect.succeed(overdue)
}

export const batchCheck = (deps: CheckDeps): ConsistencyCheck => ({
  name: "batches",
  about:
    "counters, parts and files of each batch hold each answered line once, in order, and it cost what the ledger has charged",
  findings: (looked) => {
    const judge = (rows: readonly CheckedBatch[]) =>
      Effect.gen(function* () {
        const found = [...(yield* checkMoney(deps, rows))]
        for (const row of rows) {
          found.push(...(yield* checkOne(deps, row)))
          looked(1)
        }
        return found
      })
    return inPages({ page: batchPage(deps), judge }, () => {})
  },
})
