import { Effect, Semaphore } from "effect"
import { sql } from "kysely"
import type { Database, PortError, Tenant } from "../../../core/index.ts"
import type { RetrievalTables } from "../tables.ts"
import { type PackedRows, packedRowBytes } from "./scan/packed-rows.ts"
import type { VectorSpace } from "./vector-store.ts"

/** How often the searched chunks of the tenant changed. */
export const versionOf = (
  database: Database,
  { account, mode }: Tenant,
): Effect.Effect<bigint, PortError> =>
  Effect.map(
    database.run(() =>
      database
        .queries<RetrievalTables>()
        .selectFrom("retrieval_tenant")
        .select("version")
        .where("account", "=", account)
        .where("mode", "=", mode)
        .executeTakeFirst(),
    ),
    (row) => row?.version ?? 0n,
  )

export interface ReadyDocument {
  readonly no: number
  readonly epoch: number
  readonly chunks: number
  readonly expiresMs: number
}

/** What is searched of a tenant. */
export const readyDocuments = (
  database: Database,
  { account, mode }: Tenant,
  { id, dimensions }: VectorSpace,
  nowMs: number,
): Effect.Effect<readonly ReadyDocument[], PortError> =>
  Effect.map(
    database.run(() =>
      database
        .queries<RetrievalTables>()
        .selectFrom("retrieval_document")
        .select(["no", "epoch", "chunks", "expires_at"])
        .where("account", "=", account)
        .where("mode", "=", mode)
        .where("state", "=", "ready")
        .where("space", "=", id)
        .where("dimensions", "=", dimensions)
        .where("expires_at", ">", new Date(nowMs))
        .orderBy("no")
        .execute(),
    ),
    (rows) =>
      rows.map(({ no, epoch, chunks, expires_at }) => ({
        no: Number(no),
        epoch,
        chunks,
        expiresMs: expires_at.getTime(),
      })),
  )

/** Vectors that are read together: all of some documents, or a part of one. */
export interface Page {
  readonly documents: readonly ReadyDocument[]
  readonly from: number
  readonly to: number
}

// a few ms of the thread that reads it
const pageBytes = 2 ** 20

/** Divides what is to be read, so that no page is large. */
export const pagesOf = (
  documents: readonly ReadyDocument[],
  { dimensions }: VectorSpace,
): readonly Page[] => {
  const most = Math.max(1, Math.floor(pageBytes / packedRowBytes(dimensions)))
  const pages: Page[] = []
  let together: ReadyDocument[] = []
  let rows = 0
  const flush = () => {
    if (together.length > 0) pages.push({ documents: together, from: 0, to: most - 1 })
    together = []
    rows = 0
  }
  for (const document of documents) {
    if (rows + document.chunks > most) flush()
    if (document.chunks <= most) {
      together.push(document)
      rows += document.chunks
    } else
      for (let from = 0; from < document.chunks; from += most)
        pages.push({ documents: [document], from, to: Math.min(from + most, document.chunks) - 1 })
  }
  flush()
  return pages
}

/** In a buffer of its own, which a thread can take over. */
const owned = (bytes: Buffer): Uint8Array =>
  bytes.byteLength === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes)

export type ReadPage = (
  space: VectorSpace,
  page: Page,
) => Effect.Effect<readonly PackedRows[], PortError>

/** Pages that are read at once, of all accounts, in the order in which they are asked for. */
const pagesAtOnce = 3

/**
 * Reads pages, one value for each document: a row for each chunk takes ten times as long. A large
 * account takes turns with others, and few connections.
 */
export const makePageReader = (database: Database): ReadPage => {
  const permits = Semaphore.makeUnsafe(pagesAtOnce)
  return (space, page) => permits.withPermits(1)(readPage(database, space, page))
}

const readPage = (
  database: Database,
  { id, dimensions }: VectorSpace,
  { documents, from, to }: Page,
): Effect.Effect<readonly PackedRows[], PortError> =>
  Effect.map(
    database.run(() =>
      sql<{ readonly document_no: bigint; readonly rows: Buffer }>`
        SELECT document_no, string_agg(int4send(idx) || vector, ''::bytea ORDER BY idx) AS rows
        FROM retrieval_vector
        WHERE document_no = ANY (${documents.map(({ no }) => no)}::bigint[]) AND space = ${id}
          AND idx BETWEEN ${from} AND ${to} AND octet_length(vector) = ${2 * dimensions}
        GROUP BY document_no`.execute(database.queries()),
    ),
    ({ rows }) => {
      const byNo = new Map(documents.map((document) => [document.no, document]))
      return rows.map(({ document_no, rows: packed }) => {
        const { no, chunks, expiresMs } = byNo.get(Number(document_no))!
        const counted = packed.subarray(0, chunks * packedRowBytes(dimensions))
        return { document: no, expiresMs, rows: owned(counted) }
      })
    },
  )
