import { Effect } from "effect"
import { sql } from "kysely"
import type { Finding, PortError } from "../../../core/index.ts"
import { deleteChunks } from "../documents/chunk-rows.ts"
import { tenantOf } from "../documents/claim.ts"
import { changeSearched } from "../documents/tenant-version.ts"
import { tableOf } from "../vectors/vector-rows.ts"
import { type CheckDeps, type CheckedDocument, subjectOf } from "./checked-document.ts"

type Repair = Effect.Effect<void, PortError>

/** Without a space it is in another one than the model's, so the workers embed what has no vector. */
const embedAgain = (deps: CheckDeps, row: CheckedDocument): Repair =>
  deps.database.transaction((tx) =>
    Effect.gen(function* () {
      const { rows } = yield* deps.database.run(() =>
        sql`
          UPDATE retrieval_document SET space = NULL, dimensions = NULL
          WHERE no = ${row.no} AND epoch = ${row.epoch} AND state = 'ready' RETURNING no`.execute(
          deps.database.queries(tx),
        ),
      )
      if (rows.length > 0) yield* changeSearched(deps, tenantOf(row), tx)
    }),
  )

const dropLoneVectors = ({ database, vectors }: CheckDeps, { no }: CheckedDocument): Repair =>
  Effect.asVoid(
    database.run(() =>
      sql`
        DELETE FROM ${sql.table(tableOf(vectors))} o WHERE document_no = ${no}
          AND NOT EXISTS (SELECT FROM retrieval_chunk k WHERE k.document_no = o.document_no AND k.idx = o.idx)`.execute(
        database.queries(),
      ),
    ),
  )

const dropForeignVectors = (deps: CheckDeps, row: CheckedDocument): Repair =>
  deps.database.transaction((tx) =>
    row.space === null || row.dimensions === null
      ? Effect.void
      : deps.vectors.remove(row.no, tx, { id: row.space, dimensions: row.dimensions }),
  )

const dropAll = (deps: CheckDeps, { no }: CheckedDocument): Repair =>
  deps.database.transaction((tx) =>
    Effect.andThen(deps.vectors.remove(no, tx), deleteChunks(deps, no, tx)),
  )

const count = (number: number, what: string): string =>
  `${number} ${what}${number === 1 ? "" : "s"}`

const readyFindings = (deps: CheckDeps, row: CheckedDocument): readonly Finding[] => {
  const subject = subjectOf(row)
  const found: Finding[] = []
  if (row.stored_chunks !== row.chunks)
    found.push({
      subject,
      problem: `it has ${count(row.stored_chunks, "chunk")} instead of ${row.chunks}; its owner may upload the file again`,
    })
  if (row.space !== null && row.bare_chunks > 0)
    found.push({
      subject,
      problem: `${count(row.bare_chunks, "chunk")} without a vector`,
      remedy: "they are embedded in the background; until then it is not found",
      repair: embedAgain(deps, row),
    })
  if (row.lone_vectors > 0)
    found.push({
      subject,
      problem: `${count(row.lone_vectors, "vector")} without a chunk`,
      remedy: "they are deleted",
      repair: dropLoneVectors(deps, row),
    })
  if (row.space !== null && row.foreign_vectors > 0)
    found.push({
      subject,
      problem: `${count(row.foreign_vectors, "vector")} of another embedding space, into which it is not being moved`,
      remedy: "they are deleted",
      repair: dropForeignVectors(deps, row),
    })
  return found
}

/**
 * What is stored of a document fits its state. While a job of it is held, a worker changes it:
 * only what has ended is complete.
 */
export const checkContents = (
  deps: CheckDeps,
  row: CheckedDocument,
  isHeld: boolean,
): readonly Finding[] => {
  if (isHeld) return []
  if (row.state === "ready") return readyFindings(deps, row)
  const rest = row.stored_chunks + row.lone_vectors
  return row.state === "failed" && rest > 0
    ? [
        {
          subject: subjectOf(row),
          problem: "it failed, and parts of its text are still stored",
          remedy: "they are deleted",
          repair: dropAll(deps, row),
        },
      ]
    : []
}
