import { Effect } from "effect"
import { sql } from "kysely"
import type { Database } from "../../../core/index.ts"
import type { VectorStore } from "../vectors/vector-store.ts"

export const rowsVectors = (database: Database): VectorStore => {
  const run = (query: ReturnType<typeof sql>, tx?: Parameters<VectorStore["put"]>[4]) =>
    database.run(() => query.execute(database.queries(tx)))
  return {
    name: "rows",
    put: (document, space, from, vectors, tx) =>
      Effect.forEach(
        vectors,
        (_, n) =>
          run(
            sql`INSERT INTO retrieval_vector VALUES (${document}, ${from + n}, ${space.id}, ''::bytea) ON CONFLICT DO NOTHING`,
            tx,
          ),
        { discard: true },
      ),
    missing: (document, space, limit) =>
      Effect.map(
        run(sql`
          SELECT idx FROM retrieval_chunk c WHERE document_no = ${document} AND NOT EXISTS (
            SELECT FROM retrieval_vector v WHERE v.document_no = ${document} AND v.idx = c.idx AND space = ${space.id}) ORDER BY idx LIMIT ${limit}`),
        ({ rows }) => rows.map((row) => (row as { idx: number }).idx),
      ),
    search: () => Effect.succeed([]),
    remove: (document, tx, except) =>
      Effect.asVoid(
        run(
          sql`DELETE FROM retrieval_vector WHERE document_no = ${document} AND space IS DISTINCT FROM ${except?.id ?? null}`,
          tx,
        ),
      ),
  }
}
