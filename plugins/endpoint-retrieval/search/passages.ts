import { Effect } from "effect"
import { sql } from "kysely"
import type { PortError, Tenant } from "../../../core/index.ts"
import type { VectorSpace } from "../vectors/space.ts"
import type { SearchDeps } from "./deps.ts"
import { searchable } from "./scope.ts"

/** A chunk, and the place of its text. */
export interface Passage {
  readonly document: bigint
  readonly fileId: string
  readonly index: number
  readonly text: string
  readonly page: number | null
  readonly start: number
  readonly end: number
}

interface Row {
  readonly no: bigint
  readonly file_id: string
  readonly idx: number
  readonly page: number | null
  readonly start_at: number
  readonly end_at: number
  readonly text: string
}

const toPassage = (row: Row): Passage => ({
  document: row.no,
  fileId: row.file_id,
  index: row.idx,
  text: row.text,
  page: row.page,
  start: row.start_at,
  end: row.end_at,
})

/** Names a chunk. */
export interface ChunkName {
  readonly document: bigint
  readonly index: number
}
export const nameOf = ({ document, index }: ChunkName): string => `${document}:${index}`

/**
 * Returns the chunks by their names. One whose document was deleted or expired since it was found
 * is left out.
 */
export const readPassages = (
  deps: SearchDeps,
  tenant: Tenant,
  space: VectorSpace,
  chunks: readonly ChunkName[],
): Effect.Effect<ReadonlyMap<string, Passage>, PortError> =>
  Effect.map(
    deps.database.run(() =>
      sql<Row>`
        SELECT d.no, d.file_id, c.idx, c.page, c.start_at, c.end_at, c.text
        FROM unnest(${chunks.map(({ document }) => document)}::bigint[], ${chunks.map(({ index }) => index)}::int[]) AS wanted (no, idx)
          JOIN retrieval_document d ON d.no = wanted.no AND ${searchable(deps, tenant, space)}
          JOIN retrieval_chunk c ON c.document_no = d.no AND c.idx = wanted.idx`.execute(
        deps.database.queries(),
      ),
    ),
    ({ rows }) => new Map(rows.map(toPassage).map((passage) => [nameOf(passage), passage])),
  )
