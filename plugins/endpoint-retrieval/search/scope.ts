import { Effect } from "effect"
import { type RawBuilder, type SqlBool, sql } from "kysely"
import { isId, type PortError, type Tenant } from "../../../core/index.ts"
import type { RetrievalTables } from "../tables.ts"
import type { ChunkRange, VectorSpace } from "../vectors/vector-store.ts"
import type { SearchDeps } from "./deps.ts"

/** Which documents, as `d`, the tenant's queries may find. */
export const searchable = (
  { clock }: SearchDeps,
  { account, mode }: Tenant,
  { id, dimensions }: VectorSpace,
): RawBuilder<SqlBool> =>
  sql`d.account = ${account} AND d.mode = ${mode} AND d.state = 'ready' AND d.expires_at > ${new Date(clock.nowMs())}
    AND d.space = ${id} AND d.dimensions = ${dimensions}`

export const isOneOf = (column: string, fileIds: readonly string[]): RawBuilder<SqlBool> =>
  sql`${sql.ref(column)} = ANY(${fileIds.filter(isId)})`

/** What a query is restricted to; empty: nothing. */
export interface Restriction {
  /** A file must be on each list. */
  readonly fileLists: readonly (readonly string[])[]
  /** What a file's own must have. */
  readonly metadata?: Readonly<Record<string, string>> | null | undefined
  /** Where a chunk is, both inclusive; formats without pages have no such chunk. */
  readonly pages?: { readonly from: number; readonly to: number } | undefined
}

const onPages = ({ pages }: Restriction): RawBuilder<SqlBool> =>
  pages ? sql`c.page BETWEEN ${pages.from} AND ${pages.to}` : sql`true`

const ofFiles = ({ fileLists, metadata }: Restriction): RawBuilder<SqlBool> => {
  const lists = fileLists.map((fileIds) => isOneOf("d.file_id", fileIds))
  const tags = metadata ? [sql<SqlBool>`d.metadata @> ${JSON.stringify(metadata)}::jsonb`] : []
  return sql.join([sql`true`, ...lists, ...tags], sql` AND `)
}

/** Which chunks `c` of documents `d` a query searches. */
export const restricted = (restriction: Restriction): RawBuilder<SqlBool> =>
  sql`${ofFiles(restriction)} AND ${onPages(restriction)}`

const isEmpty = ({ fileLists, metadata, pages }: Restriction): boolean =>
  fileLists.length === 0 && Object.keys(metadata ?? {}).length === 0 && !pages

/** The same as parts of documents, as pages ascend within a document; undefined: all of them. */
export const rangesOf = (
  deps: SearchDeps,
  tenant: Tenant,
  space: VectorSpace,
  restriction: Restriction,
): Effect.Effect<readonly ChunkRange[] | undefined, PortError> => {
  if (isEmpty(restriction)) return Effect.succeed(undefined)
  const documents = sql`retrieval_document d WHERE ${searchable(deps, tenant, space)} AND ${ofFiles(restriction)}`
  const statement = restriction.pages
    ? sql<ChunkRange>`
        SELECT of_file.no AS document, min(c.idx) AS "from", max(c.idx) AS "to"
        FROM (SELECT d.no FROM ${documents}) AS of_file JOIN retrieval_chunk c ON c.document_no = of_file.no AND ${onPages(restriction)}
        GROUP BY of_file.no`
    : sql<ChunkRange>`SELECT d.no AS document FROM ${documents}`
  return Effect.map(
    deps.database.run(() => statement.execute(deps.database.queries())),
    ({ rows }) => rows,
  )
}

/** Counts the tenant's documents that are ready in another space: they wait to be embedded again. */
export const countReindexing = (
  { database, clock }: SearchDeps,
  { account, mode }: Tenant,
  { id, dimensions }: VectorSpace,
): Effect.Effect<number, PortError> =>
  Effect.map(
    database.run(() =>
      database
        .queries<RetrievalTables>()
        .selectFrom("retrieval_document")
        .select(({ fn }) => fn.countAll<bigint>().as("count"))
        .where("account", "=", account)
        .where("mode", "=", mode)
        .where("state", "=", "ready")
        .where("expires_at", ">", new Date(clock.nowMs()))
        .where(sql<SqlBool>`(space, dimensions) IS DISTINCT FROM (${id}::text, ${dimensions}::int)`)
        .executeTakeFirstOrThrow(),
    ),
    ({ count }) => Number(count),
  )
