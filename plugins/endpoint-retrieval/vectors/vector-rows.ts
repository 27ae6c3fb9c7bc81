import { Effect } from "effect"
import { type RawBuilder, sql } from "kysely"
import type { Database, PortError, Tenant, Transaction } from "../../../core/index.ts"
import type { CheckedVectorStore, OrphanVectors, VectorSpace, VectorStore } from "./vector-store.ts"

/** Where vectors are kept, how a statement writes one, and what it reads of one. */
export interface VectorColumn<Read> {
  readonly table: "retrieval_vector" | "retrieval_halfvec"
  encode(vector: Float32Array, dimensions: number): unknown
  readonly read: RawBuilder<Read>
  decode(read: Read): Float32Array
}

const rowsAtOnce = 500

/** The documents of a tenant that are searched, as a query of their `no`. */
export const readyIn = (
  { account, mode }: Tenant,
  { id, dimensions }: VectorSpace,
  nowMs: number,
): RawBuilder<unknown> => sql`
  SELECT no FROM retrieval_document WHERE account = ${account} AND mode = ${mode} AND state = 'ready'
    AND space = ${id} AND dimensions = ${dimensions} AND expires_at > ${new Date(nowMs)}`

type Run = <Row>(
  statement: RawBuilder<Row>,
  tx?: Transaction,
) => Effect.Effect<readonly Row[], PortError>

const runIn =
  (database: Database): Run =>
  (statement, tx) =>
    Effect.map(
      database.run(() => statement.execute(database.queries(tx))),
      ({ rows }) => rows,
    )

/** Writing vectors, and what ingest asks. */
const writing = <Read>(
  run: Run,
  { table, encode }: VectorColumn<Read>,
): Pick<VectorStore, "put" | "missing" | "remove"> => {
  const name = sql.table(table)
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

/** What audits and checks ask. */
const checking = <Read>(
  run: Run,
  nowMs: () => number,
  { table, read, decode }: VectorColumn<Read>,
): Pick<CheckedVectorStore, "sample" | "orphans" | "removeOrphans"> => {
  const name = sql.table(table)
  const isOrphan = sql`NOT EXISTS (
    SELECT FROM retrieval_chunk AS chunk WHERE chunk.document_no = stored.document_no AND chunk.idx = stored.idx
  )`
  return {
    sample: (tenant, space, limit) =>
      Effect.map(
        run(sql<{ readonly read: Read }>`
          SELECT ${read} AS read FROM ${name}
          WHERE document_no IN (${readyIn(tenant, space, nowMs())}) AND space = ${space.id}
          ORDER BY random() LIMIT ${limit}`),
        (rows) => rows.map((row) => decode(row.read)),
      ),
    orphans: (after, limit) =>
      run(sql<OrphanVectors>`
        SELECT document_no AS document, space, count(*)::int AS count FROM ${name} AS stored
        WHERE document_no > ${after} AND ${isOrphan}
        GROUP BY document_no, space ORDER BY document_no, space LIMIT ${limit}`),
    removeOrphans: (document) =>
      Effect.asVoid(
        run(sql`DELETE FROM ${name} AS stored WHERE document_no = ${document} AND ${isOrphan}`),
      ),
  }
}

/** What stores of vectors in a table have in common. */
export const vectorRows = <Read>(
  database: Database,
  nowMs: () => number,
  column: VectorColumn<Read>,
) => {
  const run = runIn(database)
  return { ...writing(run, column), ...checking(run, nowMs, column) }
}
