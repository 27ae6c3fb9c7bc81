import { Effect } from "effect"
import {
  type ConsistencyCheck,
  type Finding,
  inPages,
  type PortError,
} from "../../../core/index.ts"
import { tenantOf } from "../documents/claim.ts"
import { sendIngest, withJobs } from "../ingest/send-job.ts"
import {
  type CheckDeps,
  type CheckedDocument,
  documentNow,
  documentPage,
  hasGoneOn,
  isEnded,
  subjectOf,
} from "./checked-document.ts"
import { checkContents } from "./contents.ts"
import { checkFile } from "./file-state.ts"
import { checkMoney } from "./money.ts"

const minuteMs = 60_000
const hourMs = 60 * minuteMs
/** A running worker finds a lost job within a minute, and ends what is late as soon. */
const graceMs = 10 * minuteMs

const checkWork = (deps: CheckDeps, row: CheckedDocument, isHeld: boolean): readonly Finding[] => {
  const { clock, settings } = deps
  const ageMs = clock.nowMs() - row.created_at.getTime()
  if (isEnded(row) || ageMs <= graceMs) return []
  const subject = subjectOf(row)
  if (ageMs > settings.ingestHours * hourMs + graceMs)
    return [
      {
        subject,
        problem: `it is still ${row.state}, but its ${settings.ingestHours} hours are over: no worker has ended it`,
      },
    ]
  return isHeld
    ? []
    : [
        {
          subject,
          problem: `it is ${row.state}, and no job works on it`,
          remedy: "it gets another job",
          repair: sendIngest(deps, tenantOf(row), "short", { file: row.file_id }),
        },
      ]
}

const checkPage = (
  deps: CheckDeps,
  rows: readonly CheckedDocument[],
): Effect.Effect<ReadonlyMap<bigint, readonly Finding[]>, PortError> =>
  Effect.gen(function* () {
    const held = yield* withJobs(
      deps,
      rows.map(({ file_id }) => file_id),
    )
    const money = yield* checkMoney(deps, rows)
    const found = new Map<bigint, readonly Finding[]>()
    for (const row of rows) {
      const isHeld = held.has(row.file_id)
      found.set(row.no, [
        ...(yield* checkFile(deps, row)),
        ...checkWork(deps, row, isHeld),
        ...checkContents(deps, row, isHeld),
        ...(money.get(row.no) ?? []),
      ])
    }
    return found
  })

/** Rows, files and ledger are read one after another: what is wrong is so in a second look, too. */
const judge = (deps: CheckDeps) => (rows: readonly CheckedDocument[]) =>
  Effect.gen(function* () {
    const all: Finding[] = []
    const first = yield* checkPage(deps, rows)
    for (const row of rows) {
      const problems = new Set(first.get(row.no)?.map(({ problem }) => problem))
      if (problems.size === 0) continue
      const now = yield* documentNow(deps, row)
      if (!now || hasGoneOn(row, now)) continue
      const again = (yield* checkPage(deps, [now])).get(row.no) ?? []
      all.push(...again.filter(({ problem }) => problems.has(problem)))
    }
    return all
  })

export const documentCheck = (deps: CheckDeps): ConsistencyCheck => ({
  name: "retrieval",
  about:
    "each knowledge file has its chunks, a vector for each of them, the state that its document has, and cost what the ledger has charged",
  findings: (looked) => inPages({ page: documentPage(deps), judge: judge(deps) }, looked),
})
