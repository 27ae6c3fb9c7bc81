import { Effect } from "effect"
import { type RawBuilder, sql } from "kysely"
import type { Database, PortError, Tenant } from "../../../core/index.ts"
import { floatOfHalf } from "../vectors/half-floats.ts"
import type { Page } from "../vectors/stored-vectors.ts"
import type { tableOf } from "../vectors/vector-rows.ts"
import type { VectorSpace } from "../vectors/vector-store.ts"

type Table = ReturnType<typeof tableOf>

/** What is searched of a tenant in one space. */
export interface SearchedPart {
  readonly tenant: Tenant
  readonly space: VectorSpace
  readonly documents: number
  readonly chunks: number
}

const run = <Row>(database: Database, statement: RawBuilder<Row>) =>
  Effect.map(
    database.run(() => statement.execute(database.queries())),
    ({ rows }) => rows,
  )

/** Ready documents whose files have not expired. */
const searched = (nowMs: number) =>
  sql`document.state = 'ready' AND document.expires_at > ${new Date(nowMs)}`

const ofTenant = ({ account, mode }: Tenant, { id, dimensions }: VectorSpace, nowMs: number) =>
  sql`document.account = ${account} AND document.mode = ${mode} AND document.space = ${id}
    AND document.dimensions = ${dimensions} AND ${searched(nowMs)}`

/** What is searched of all accounts, or of one. */
export const searchedParts = (
  database: Database,
  nowMs: number,
  account: string | undefined,
): Effect.Effect<readonly SearchedPart[], PortError> =>
  Effect.map(
    run(
      database,
      sql<Tenant & { space: string; dimensions: number; documents: number; chunks: number }>`
        SELECT account, mode, space, dimensions, count(*)::int AS documents, sum(chunks)::int AS chunks
        FROM retrieval_document AS document
        WHERE ${searched(nowMs)} AND ${account === undefined ? sql`true` : sql`account = ${account}`}
        GROUP BY account, mode, space, dimensions ORDER BY account, mode, space, dimensions`,
    ),
    (rows) =>
      rows.map(({ account, mode, space, dimensions, documents, chunks }) => ({
        tenant: { account, mode },
        space: { id: space, dimensions },
        documents,
        chunks,
      })),
  )

/** Chunks that no search by meaning finds, and vectors that lead nowhere. */
export interface Gaps {
  readonly chunksWithoutVectors: number
  readonly vectorsWithoutChunks: number
}

export const gapsOf = (
  database: Database,
  table: Table,
  { tenant, space }: SearchedPart,
  nowMs: number,
): Effect.Effect<Gaps, PortError> =>
  Effect.map(
    run(
      database,
      sql<Gaps>`
        SELECT count(*) FILTER (WHERE vector.idx IS NULL)::int AS "chunksWithoutVectors",
          count(*) FILTER (WHERE chunk.idx IS NULL)::int AS "vectorsWithoutChunks"
        FROM (
          SELECT document_no, idx FROM retrieval_chunk AS chunk
          JOIN retrieval_document AS document ON document.no = document_no
          WHERE ${ofTenant(tenant, space, nowMs)}
        ) AS chunk FULL JOIN (
          SELECT document_no, idx FROM ${sql.table(table)} AS vector
          JOIN retrieval_document AS document ON document.no = document_no
          WHERE ${ofTenant(tenant, space, nowMs)} AND vector.space = ${space.id}
        ) AS vector USING (document_no, idx)`,
    ),
    ([gaps]) => gaps!,
  )

/** Vectors whose document does not exist. */
export const orphans = (database: Database, table: Table): Effect.Effect<number, PortError> =>
  Effect.map(
    run(
      database,
      sql<{ readonly vectors: number }>`
        SELECT count(*)::int AS vectors FROM ${sql.table(table)} AS vector
        WHERE NOT EXISTS (SELECT FROM retrieval_document WHERE no = vector.document_no)`,
    ),
    ([row]) => row!.vectors,
  )

export interface StoredVector {
  readonly document: bigint
  readonly index: number
  readonly vector: Float32Array
}

const fromHalves = (bytes: Buffer, isBigEndian: boolean): Float32Array =>
  Float32Array.from(
    { length: bytes.length / 2 },
    (_, i) => floatOfHalf[isBigEndian ? bytes.readUInt16BE(2 * i) : bytes.readUInt16LE(2 * i)]!,
  )

// halfvec_send: the number of dimensions and two unused bytes, then halves in network order
const sentHead = 4
const decode = (table: Table, bytes: Buffer): Float32Array =>
  table === "retrieval_halfvec"
    ? fromHalves(bytes.subarray(sentHead), true)
    : fromHalves(bytes, false)

const bytesIn = (table: Table) =>
  table === "retrieval_halfvec" ? sql`halfvec_send(vector.vector)` : sql`vector.vector`

interface Row {
  readonly document_no: bigint
  readonly idx: number
  readonly bytes: Buffer
}

/** The vectors of a page, but those beyond the chunks of their document. */
export const vectorsOf = (
  database: Database,
  table: Table,
  { id }: VectorSpace,
  { documents, from, to }: Page,
): Effect.Effect<readonly StoredVector[], PortError> =>
  Effect.map(
    run(
      database,
      sql<Row>`
        SELECT vector.document_no, vector.idx, ${bytesIn(table)} AS bytes FROM ${sql.table(table)} AS vector
        WHERE vector.document_no = ANY (${documents.map(({ no }) => no)}::bigint[])
          AND vector.space = ${id} AND vector.idx BETWEEN ${from} AND ${to}`,
    ),
    (rows) => {
      const chunks = new Map(documents.map((document) => [document.no, document.chunks]))
      return rows
        .filter(({ document_no, idx }) => idx < chunks.get(Number(document_no))!)
        .map(({ document_no, idx, bytes }) => ({
          document: document_no,
          index: idx,
          vector: decode(table, bytes),
        }))
    },
  )
