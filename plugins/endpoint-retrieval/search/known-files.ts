import { Effect } from "effect"
import { type ApiError, apiError, isId, type PortError, type Tenant } from "../../../core/index.ts"
import type { RetrievalTables } from "../tables.ts"
import type { SearchDeps } from "./deps.ts"
import { isOneOf } from "./scope.ts"

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
        .where(isOneOf("file_id", ids))
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
