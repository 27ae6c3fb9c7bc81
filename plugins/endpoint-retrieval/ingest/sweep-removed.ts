import { Cause, Effect } from "effect"
import { sql } from "kysely"
import type { PortError } from "../../../core/index.ts"
import { deleteChunks } from "../documents/chunk-rows.ts"
import type { RetrievalTables } from "../tables.ts"
import { tableOf } from "../vectors/vector-rows.ts"
import type { IngestDeps } from "./ingest-deps.ts"

const documentsPerPage = 200
/** A statement over the largest files could take longer than the database lets it. */
const rowsPerStatement = 5_000

const removedAfter = ({ database }: IngestDeps, after: bigint) =>
  database.run(() =>
    database
      .queries<RetrievalTables>()
      .selectFrom("retrieval_document")
      .select("no")
      .where("state", "=", "removed")
      .where("removed_at", "is not", null)
      .where("no", ">", after)
      .orderBy("no")
      .limit(documentsPerPage)
      .execute(),
  )

/** In commits of their own: what one has deleted stays deleted though a later one fails. */
const deletePages = (
  { database }: IngestDeps,
  table: "retrieval_chunk" | ReturnType<typeof tableOf>,
  no: bigint,
): Effect.Effect<void, PortError> =>
  Effect.gen(function* () {
    const name = sql.table(table)
    for (;;) {
      const { numAffectedRows } = yield* database.run(() =>
        sql`
          DELETE FROM ${name} WHERE ctid = ANY(ARRAY(
            SELECT ctid FROM ${name} WHERE document_no = ${no} LIMIT ${rowsPerStatement}))`.execute(
          database.queries(),
        ),
      )
      if ((numAffectedRows ?? 0n) < rowsPerStatement) return
    }
  })

const drop = (deps: IngestDeps, no: bigint): Effect.Effect<void, PortError> =>
  Effect.gen(function* () {
    const { database, vectors } = deps
    yield* deletePages(deps, tableOf(vectors), no)
    yield* deletePages(deps, "retrieval_chunk", no)
    yield* database.transaction((tx) =>
      Effect.gen(function* () {
        yield* vectors.remove(no, tx)
        yield* deleteChunks(deps, no, tx)
        yield* database.run(() =>
          database
            .queries<RetrievalTables>(tx)
            .deleteFrom("retrieval_document")
            .where("no", "=", no)
            .execute(),
        )
      }),
    )
  })

/**
 * Deletes the rows of removed documents, but of those for which that fails: a later sweep tries
 * them again. Returns the number of deleted documents.
 */
export const sweepRemoved = (deps: IngestDeps): Effect.Effect<number, PortError> =>
  Effect.gen(function* () {
    let [after, dropped, kept] = [0n, 0, 0]
    let firstCause = ""
    for (;;) {
      const rows = yield* removedAfter(deps, after)
      for (const { no } of rows) {
        const failure = yield* drop(deps, no).pipe(
          Effect.as(undefined),
          Effect.catch((error) => Effect.succeed(Cause.pretty(Cause.fail(error)))),
        )
        if (failure === undefined) dropped++
        else if (kept++ === 0) firstCause = failure
        after = no
      }
      if (rows.length < documentsPerPage) break
    }
    if (kept > 0)
      deps.log.warn("retrieval.documents_kept", "rows of some deleted files could not be dropped", {
        documents: kept,
        cause: firstCause,
      })
    return dropped
  })
