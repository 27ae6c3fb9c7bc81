import { Effect } from "effect"
import { type RawBuilder, sql } from "kysely"
import type { Database, PortError, Transaction } from "../../../../core/index.ts"
import type { RetrievalDeps } from "../../deps.ts"
import { roundedToHalves, unitPrefix } from "../half-floats.ts"
import { isReadyIn, type VectorColumn, vectorRows } from "../vector-rows.ts"
import type { ChunkRange, VectorHit, VectorQuery, VectorStore } from "../vector-store.ts"
import { indexedBy, makeHnswIndices } from "./hnsw-index.ts"

/** Smaller accounts are searched exactly: that is quicker than to look for them in an index of all. */
export const hnswFrom = 10_000

/** Candidates of each step of the index, and the most that it reads for a query. */
const [efSearch, maxScanTuples] = [200, 200_000]

const textOf = (vector: Float32Array): string => `[${vector.join(",")}]`

const maxIndex = 2 ** 31 - 1

const within = (ranges: readonly ChunkRange[]): RawBuilder<unknown> => sql`
  AND EXISTS (
    SELECT FROM unnest(
      ${ranges.map(({ document }) => document)}::bigint[],
      ${ranges.map(({ from = 0 }) => from)}::int[],
      ${ranges.map(({ to = maxIndex }) => Math.min(to, maxIndex))}::int[]
    ) AS range (no, first, last)
    WHERE no = document_no AND idx BETWEEN first AND last
  )`

interface HitRow {
  readonly document: bigint
  readonly index: number
  readonly score: number
}

/** Compares with every vector of the tenant. */
const exactly = (
  database: Database,
  { tenant, space, vector, limit, ranges }: VectorQuery,
  nowMs: number,
): Effect.Effect<readonly VectorHit[], PortError> =>
  Effect.map(
    database.run(() => {
      const asked = textOf(roundedToHalves(unitPrefix(vector, space.dimensions)))
      return sql<HitRow>`
        SELECT document_no AS document, idx AS index, -(vector <#> ${asked}::halfvec) AS score
        FROM (SELECT no FROM retrieval_document WHERE ${isReadyIn(tenant, space, nowMs)}) AS ready JOIN retrieval_halfvec ON document_no = no
        WHERE space = ${space.id} AND vector_dims(vector) = ${space.dimensions} ${ranges ? within(ranges) : sql``}
        ORDER BY score DESC, document_no, idx LIMIT ${limit}`.execute(database.queries())
    }),
    ({ rows }) => rows,
  )

/** Follows the index of the space, step by step, until enough chunks are the tenant's. */
const byIndex = (
  database: Database,
  { tenant, space, vector, limit }: VectorQuery,
  nowMs: number,
  tx: Transaction,
): Effect.Effect<readonly VectorHit[], PortError> =>
  Effect.map(
    database.run(async () => {
      const db = database.queries(tx)
      const indexed = indexedBy(space)
      const asked = textOf(roundedToHalves(unitPrefix(vector, space.dimensions)))
      const distance = sql`${indexed.vector} <#> ${asked}::halfvec(${sql.raw(String(space.dimensions))})`
      await sql`
        SELECT set_config('hnsw.iterative_scan', 'strict_order', true),
          set_config('hnsw.ef_search', ${String(Math.max(efSearch, limit))}, true),
          set_config('hnsw.max_scan_tuples', ${String(maxScanTuples)}, true),
          set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
          set_config('enable_sort', 'off', true)`.execute(db)
      // a look-up of each row's document: a join would tempt the planner away from the index
      return sql<HitRow>`
        SELECT document_no AS document, idx AS index, -(${distance}) AS score
        FROM retrieval_halfvec
        WHERE ${indexed.isInSpace} AND (
          SELECT ${isReadyIn(tenant, space, nowMs)} FROM retrieval_document WHERE no = document_no
        )
        ORDER BY ${distance} LIMIT ${limit}`.execute(db)
    }),
    ({ rows }) =>
      [...rows].sort(
        (a, b) => b.score - a.score || Number(a.document - b.document) || a.index - b.index,
      ),
  )

const chunksOf = (
  database: Database,
  { tenant, space }: VectorQuery,
  nowMs: number,
): Effect.Effect<number, PortError> =>
  Effect.map(
    database.run(() =>
      sql<{ chunks: bigint }>`
        SELECT coalesce(sum(chunks), 0)::bigint AS chunks FROM retrieval_document
        WHERE ${isReadyIn(tenant, space, nowMs)}`.execute(database.queries()),
    ),
    ({ rows }) => Number(rows[0]!.chunks),
  )

const column: VectorColumn = {
  table: "retrieval_halfvec",
  encode: (vector, dimensions) =>
    sql`${textOf(roundedToHalves(unitPrefix(vector, dimensions)))}::halfvec`,
}

/** Vectors in columns of pgvector, searched by an exact scan of the database. */
export const makeExactStore = ({ database, clock }: RetrievalDeps): VectorStore => ({
  ...vectorRows(database, column),
  name: "pgvector exact",
  search: (query) => exactly(database, query, clock.nowMs()),
})

/**
 * As the exact store; all that a large account has is searched by an HNSW index (Malkov and
 * Yashunin, arXiv 1603.09320), which may miss some.
 */
export const makeHnswStore = (
  deps: RetrievalDeps,
  { from = hnswFrom, makesIndices = true } = {},
): VectorStore => {
  const { database, clock } = deps
  const indices = makeHnswIndices(deps, makesIndices)
  const exact = makeExactStore(deps)
  const search: VectorStore["search"] = (query) =>
    Effect.gen(function* () {
      const nowMs = clock.nowMs()
      if (query.ranges || (yield* chunksOf(database, query, nowMs)) < from)
        return yield* exact.search(query)
      if (!(yield* indices.has(query.space))) return yield* exact.search(query)
      const hits = yield* database.transaction((tx) => byIndex(database, query, nowMs, tx))
      // the index gave up before it found enough
      return hits.length < query.limit ? yield* exact.search(query) : hits
    })
  return { ...exact, name: "pgvector hnsw", search }
}
