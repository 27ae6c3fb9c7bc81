import { Effect } from "effect"
import {
  type ApiError,
  badQuery,
  type FilePurpose,
  type PortError,
  placeOf,
  readPage,
  type Strings,
  type Tenant,
} from "../../../core/index.ts"
import type { FilesDeps } from "../deps.ts"
import { type FileListing, placeOfFile } from "./file-rows.ts"
import { readPurposeFilter } from "./purpose.ts"

export interface ListQuery {
  readonly limit: number
  readonly order: "asc" | "desc"
  readonly after: string | undefined
  readonly purpose: FilePurpose | undefined
}

export const readListQuery = (query: Strings): Effect.Effect<ListQuery, ApiError> =>
  Effect.gen(function* () {
    const { order = "desc", purpose } = query
    const { limit, after } = yield* readPage(query)
    if (order !== "asc" && order !== "desc") return yield* badQuery("order", "must be asc or desc")
    return {
      limit,
      order,
      after: after === "" ? undefined : after,
      purpose: yield* readPurposeFilter(purpose),
    }
  })

/** One row more than the page has: whether it is there says whether there is more. */
export const toListing = (
  deps: FilesDeps,
  tenant: Tenant,
  { after, limit, ...query }: ListQuery,
): Effect.Effect<FileListing, ApiError | PortError> =>
  Effect.map(
    placeOf(after, (id) => placeOfFile(deps, tenant, id)),
    (place) => ({ ...query, limit: limit + 1, after: place }),
  )
