import { Effect } from "effect"
import { sql } from "kysely"
import type { Database, PortError, Transaction } from "../../../core/index.ts"
import type { VectorSpace, VectorStore } from "./vector-store.ts"

/** Where vectors are kept, and how a statement writes one. */
export interface VectorColumn {
  readonly table: "retrieval_vector" | "retrieval_halfvec"
  encode(vector: Float32Array, dimensions: number): unknown
}

type Rows = Pick<VectorStore, "put" | "missing" | "remove">

const rowsAtOnce = 500

/** What stores of vectors in a table have in common. */
export const vectorRows = (database: Database, { table, encode }: VectorColumn): Rows => {
  const name = sql.table(table)
  const run = <Row>(statement: ReturnType<typeof sql<Row>>, tx?: Transaction) =>
    database.run(() => statement.execute(database.queries(tx)))
  const insert = (
    document: bigint,
    { id, dimensions }: VectorSpace,
    from: number,
    vectors: readonly Float32Array[],
    tx: Transaction,
  ): Effect.Effect<unknown, PortError> => {
    const rows = vectors.map(
      (vector, i) => sql`(${document}, ${from + i}, ${id}, ${encode(vector, dimensions)})`,
    )
    return run(
      sql`
        INSERT INTO ${name} (document_no, idx, space, vector) VALUES ${sql.join(rows)}
        ON CONFLICT (document_no, space, idx) DO UPDATE SET vector = excluded.vector`,
      tx,
    )
  }
  return {
    put: (document, space, from, vectors, tx) => {
      const starts = Array.from(
        { length: Math.ceil(vectors.length / rowsAtOnce) },
        (_, i) => i * rowsAtOnce,
      )
      return Effect.forEach(
        starts,
        (at) => insert(document, space, from + at, vectors.slice(at, at + rowsAtOnce), tx),
        { discard: true },
      )
    },
    missing: (document, { id }, limit) =>
      Effect.map(
        run(sql<{ readonly idx: number }>`
          SELECT idx FROM retrieval_chunk AS chunk WHERE document_no = ${document} AND NOT EXISTS (
            SELECT FROM ${name} WHERE document_no = ${document} AND space = ${id} AND idx = chunk.idx
          ) ORDER BY idx LIMIT ${limit}`),
        ({ rows }) => rows.map(({ idx }) => idx),
      ),
    remove: (document, tx, except) =>
      Effect.asVoid(
        run(
          sql`DELETE FROM ${name} WHERE document_no = ${document} AND space IS DISTINCT FROM ${except?.id ?? null}`,
          tx,
        ),
      ),
  }
}
