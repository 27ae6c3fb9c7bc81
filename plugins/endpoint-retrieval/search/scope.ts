import { Effect } from "effect"
import { type RawBuilder, type SqlBool, sql } from "kysely"
import { type ApiError, apiError, isId, type PortError, type Tenant } from "../../../core/index.ts"
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

const isOneOf = (fileIds: readonly string[]): RawBuilder<SqlBool> =>
  sql`file_id = ANY(${fileIds.filter(isId)})`

const checkFile = (
  { files }: SearchDeps,
  tenant: Tenant,
  id: string,
  param: string,
): Effect.Effect<void, ApiError | PortError> =>
  Effect.gen(function* () {
    const file = isId(id) ? yield* files.find(tenant, id) : undefined
    if (!file) return yield* apiError("not_found", `${param}: there is no such file`, { param })
    if (file.purpose !== "knowledge")
      return yield* apiError(
        "invalid_request_error",
        `${param}: its purpose must be knowledge, but is ${file.purpose}`,
        { param },
      )
  })

/**
 * Fails for the first file that the tenant does not have, or has for another purpose. One that is
 * not processed yet is no failure: it has nothing to find.
 */
export const checkFiles = (
  deps: SearchDeps,
  { account, mode }: Tenant,
  ids: readonly string[],
  param: string,
): Effect.Effect<void, ApiError | PortError> =>
  Effect.gen(function* () {
    if (ids.length === 0) return
    const { database, clock } = deps
    const rows = yield* database.run(() =>
      database
        .queries<RetrievalTables>()
        .selectFrom("retrieval_document")
        .select("file_id")
        .where(isOneOf(ids))
        .where("account", "=", account)
        .where("mode", "=", mode)
        .where("state", "!=", "removed")
        .where("expires_at", ">", new Date(clock.nowMs()))
        .execute(),
    )
    const known = new Set(rows.map(({ file_id }) => file_id))
    for (const [at, id] of ids.entries())
      if (!known.has(id)) yield* checkFile(deps, { account, mode }, id, `${param}[${at}]`)
  })

/** What a query is restricted to. */
export interface Restriction {
  readonly fileIds?: readonly string[] | null | undefined
}

/** The parts of documents that a query searches; undefined: all that the tenant has. */
export const rangesOf = (
  deps: SearchDeps,
  tenant: Tenant,
  space: VectorSpace,
  { fileIds }: Restriction,
): Effect.Effect<readonly ChunkRange[] | undefined, PortError> =>
  Effect.gen(function* () {
    if (!fileIds) return undefined
    const rows = yield* deps.database.run(() =>
      deps.database
        .queries<RetrievalTables>()
        .selectFrom("retrieval_document as d")
        .select("d.no")
        .where(searchable(deps, tenant, space))
        .where(isOneOf(fileIds))
        .execute(),
    )
    return rows.map(({ no }) => ({ document: no }))
  })

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
        .where((eb) => eb.or([eb("space", "!=", id), eb("dimensions", "!=", dimensions)]))
        .executeTakeFirstOrThrow(),
    ),
    ({ count }) => Number(count),
  )
