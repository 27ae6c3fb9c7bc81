import { Effect } from "effect"
import type { FileStatus, Finding, PortError } from "../../../core/index.ts"
import { tenantOf } from "../documents/claim.ts"
import { removeDocument } from "../documents/document-rows.ts"
import { countsOf } from "../ingest/progress.ts"
import type { DocumentRow } from "../tables.ts"
import { type CheckDeps, type CheckedDocument, subjectOf } from "./checked-document.ts"

const statuses: Readonly<Record<DocumentRow["state"], readonly FileStatus[]>> = {
  waiting: ["uploaded", "processing"],
  extracting: ["processing"],
  embedding: ["processing"],
  ready: ["processed"],
  failed: ["failed"],
  removed: [],
}

/** What the file object says is what the document is, and neither is without the other. */
export const checkFile = (
  deps: CheckDeps,
  row: CheckedDocument,
): Effect.Effect<readonly Finding[], PortError> =>
  Effect.gen(function* () {
    // an expired file is deleted by its own plugin, and its document with it
    if (row.expires_at.getTime() <= deps.clock.nowMs()) return []
    const { files, database } = deps
    const file = yield* files.find(tenantOf(row), row.file_id)
    const subject = subjectOf(row)
    if (!file)
      return [
        {
          subject,
          problem: "its file does not exist",
          remedy: "it is removed",
          repair: database.transaction((tx) =>
            removeDocument(deps, tenantOf(row), row.file_id, tx),
          ),
        },
      ]
    if (statuses[row.state].includes(file.status)) return []
    const problem = `it is ${row.state}, and its file says ${file.status}`
    const processed = { status: "processed", progress: countsOf(row) } as const
    return [
      row.state === "ready"
        ? {
            subject,
            problem,
            remedy: "the file says processed",
            repair: Effect.asVoid(files.mark(tenantOf(row), row.file_id, processed)),
          }
        : { subject, problem },
    ]
  })
