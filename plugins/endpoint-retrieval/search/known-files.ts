import { Effect, Stream } from "effect"
import {
  type ApiError,
  apiError,
  isId,
  type PortError,
  type StoredFile,
  type Tenant,
} from "../../../core/index.ts"
import type { RetrievalTables } from "../tables.ts"
import type { SearchDeps } from "./deps.ts"
import { isOneOf } from "./scope.ts"

/** Each is a statement, and most ids are known without one. */
const lookUpsAtOnce = 8

const checkFile = (file: StoredFile | undefined, param: string): Effect.Effect<void, ApiError> => {
  if (!file) return apiError("not_found", `${param}: there is no such file`, { param })
  return file.purpose === "knowledge"
    ? Effect.void
    : apiError(
        "invalid_request_error",
        `${param}: its purpose must be knowledge, but is ${file.purpose}`,
        { param },
      )
}

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
    const { database, clock, files } = deps
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
    yield* Stream.fromIterable(ids.entries()).pipe(
      Stream.filter(([, id]) => !known.has(id)),
      // which keeps their order
      Stream.mapEffect(
        ([at, id]) =>
          Effect.map(
            isId(id) ? files.find({ account, mode }, id) : Effect.succeed(undefined),
            (file) => ({ file, param: `${param}[${at}]` }),
          ),
        { concurrency: lookUpsAtOnce },
      ),
      Stream.runForEach((found) => checkFile(found.file, found.param)),
    )
  })
