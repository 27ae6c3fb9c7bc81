import { Effect } from "effect"
import { sql } from "kysely"
import { type ConsistencyCheck, type Finding, inPages } from "../../../core/index.ts"
import { deleteChunks } from "../documents/chunk-rows.ts"
import { tableOf } from "../vectors/vector-rows.ts"
import type { CheckDeps } from "./checked-document.ts"

interface Orphan {
  readonly no: bigint
}

/** Numbers of documents that do not exist, and of which there are chunks or vectors. */
const page =
  ({ database, vectors }: CheckDeps) =>
  (after: Orphan | undefined, limit: number) => {
    const of = (table: ReturnType<typeof sql.table>) => sql`
      SELECT DISTINCT document_no AS no FROM ${table} p WHERE document_no > ${after?.no ?? 0n}
        AND NOT EXISTS (SELECT FROM retrieval_document d WHERE d.no = p.document_no)`
    return Effect.map(
      database.run(() =>
        sql<Orphan>`
          SELECT no FROM (${of(sql.table("retrieval_chunk"))} UNION ${of(sql.table(tableOf(vectors)))}) AS orphans
          ORDER BY no LIMIT ${limit}`.execute(database.queries()),
      ),
      ({ rows }) => rows,
    )
  }

const findingOf = (deps: CheckDeps, { no }: Orphan): Finding => ({
  subject: `index ${no}`,
  problem: "there are chunks or vectors of it, but there is no such document",
  remedy: "they are deleted",
  repair: deps.database.transaction((tx) =>
    Effect.andThen(deps.vectors.remove(no, tx), deleteChunks(deps, no, tx)),
  ),
})

export const orphanCheck = (deps: CheckDeps): ConsistencyCheck => ({
  name: "retrieval-orphans",
  about: "chunks and vectors belong to documents that exist",
  findings: (looked) =>
    inPages(
      {
        page: page(deps),
        judge: (rows) => Effect.succeed(rows.map((row) => findingOf(deps, row))),
      },
      looked,
    ),
})
