import { Effect } from "effect"
import { sql } from "kysely"
import type { Billing, Files, Ledger, PortError, Queue } from "../../../core/index.ts"
import type { RetrievalDeps } from "../deps.ts"
import type { DocumentRow } from "../tables.ts"
import { tableOf } from "../vectors/vector-rows.ts"
import type { VectorStore } from "../vectors/vector-store.ts"

export interface CheckDeps extends RetrievalDeps {
  readonly files: Files
  readonly queue: Queue
  readonly billing: Billing
  readonly vectors: VectorStore
  /** Undefined in a deployment without a ledger. */
  readonly ledger: () => Ledger | undefined
}

/** A document and what there is of it, read in one statement. */
export interface CheckedDocument extends DocumentRow {
  readonly stored_chunks: number
  /** Without a vector in its space. */
  readonly bare_chunks: number
  /** Without a chunk. */
  readonly lone_vectors: number
  readonly foreign_vectors: number
}

const read = (
  { database, vectors }: CheckDeps,
  rest: ReturnType<typeof sql>,
): Effect.Effect<readonly CheckedDocument[], PortError> => {
  const table = sql.table(tableOf(vectors))
  const query = sql<CheckedDocument>`
    SELECT d.*, c.*, v.* FROM retrieval_document d
    CROSS JOIN LATERAL (
      SELECT count(*)::int AS stored_chunks, count(*) FILTER (WHERE NOT EXISTS (
        SELECT FROM ${table} o WHERE o.document_no = d.no AND o.space = d.space AND o.idx = k.idx))::int AS bare_chunks
      FROM retrieval_chunk k WHERE k.document_no = d.no) c
    CROSS JOIN LATERAL (
      SELECT count(*) FILTER (WHERE o.space IS DISTINCT FROM d.space)::int AS foreign_vectors,
        count(*) FILTER (WHERE NOT EXISTS (
          SELECT FROM retrieval_chunk k WHERE k.document_no = d.no AND k.idx = o.idx))::int AS lone_vectors
      FROM ${table} o WHERE o.document_no = d.no) v
    WHERE d.state <> 'removed' AND ${rest}`
  return Effect.map(
    database.run(() => query.execute(database.queries())),
    ({ rows }) => rows,
  )
}

export const documentPage =
  (deps: CheckDeps) => (after: CheckedDocument | undefined, limit: number) =>
    read(deps, sql`d.no > ${after?.no ?? 0n} ORDER BY d.no LIMIT ${limit}`)

export const documentNow = (
  deps: CheckDeps,
  { no }: Pick<DocumentRow, "no">,
): Effect.Effect<CheckedDocument | undefined, PortError> =>
  Effect.map(read(deps, sql`d.no = ${no}`), ([row]) => row)

/** How a finding names it. */
export const subjectOf = ({ file_id, account, mode }: DocumentRow): string =>
  `index of file ${file_id} of account ${account} (${mode})`

/** A worker, a deletion or a repair has changed it between two reads. */
export const hasGoneOn = (before: DocumentRow, now: DocumentRow | undefined): boolean =>
  now === undefined ||
  now.epoch !== before.epoch ||
  now.state !== before.state ||
  now.space !== before.space ||
  now.chunks !== before.chunks ||
  now.embedded !== before.embedded

export const isEnded = ({ state }: DocumentRow): boolean => state === "ready" || state === "failed"
