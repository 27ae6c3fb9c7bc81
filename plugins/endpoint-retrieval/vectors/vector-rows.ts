import { Effect } from "effect"
import { type RawBuilder, sql } from "kysely"
import type { Database, PortError, Tenant, Transaction } from "../../../core/index.ts"
import type { VectorSpace, VectorStore } from "./vector-store.ts"

/** Where vectors are kept, and how a statement writes one. */
export interface VectorColumn {
  readonly table: "retrieval_vector" | "retrieval_halfvec"
  encode(vector: Float32Array, dimensions: number): unknown
}

/** Where a store keeps its vectors. */
export const tableOf = ({ name }: Pick<VectorStore, "name">): VectorColumn["table"] =>
  name.startsWith("pgvector") ? "retrieval_halfvec" : "retrieval_vector"

const rowsAtOnce = 500

/** Whether a document is the tenant's and searched. */
export const isReadyIn = (
  { account, mode }: Tenant,
  { id, dimensions }: VectorSpace,
  nowMs: number,
): RawBuilder<unknown> => sql`
  account = ${account} AND mode = ${mode} AND state = 'ready'
    AND space = ${id} AND dimensions = ${dimensions} AND expires_at > ${new Date(nowMs)}`

const runIn =
  (database: Database) =>
  <Row>(statement: RawBuilder<Row>, tx?: Transaction): Effect.Effect<readonly Row[], PortError> =>
    Effect.map(
      database.run(() => statement.execute(database.queries(tx))),
      ({ rows }) => rows,
    )

/** What stores of vectors in a table have in common. */
export const vectorRows = (
  database: Database,
  { table, encode }: VectorColumn,
): Pick<VectorStore, "put" | "missing" | "remove"> => {
  const name = sql.table(table)
  const run = runIn(database)
  const insert = (
    document: bigint,
    { id, dimensions }: VectorSpace,
    from: number,
    vectors: readonly Float32Array[],
    tx: Transaction,
  ) => {
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
        (rows) => rows.map(({ idx }) => idx),
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
