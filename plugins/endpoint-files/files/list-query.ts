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
import { type FileListing, seqOfFile } from "./file-rows.ts"
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

/** Asks for one row more than the page has, which tells whether there is a next page. */
export const toListing = (
  deps: FilesDeps,
  tenant: Tenant,
  { after, limit, ...query }: ListQuery,
): Effect.Effect<FileListing, ApiError | PortError> =>
  Effect.map(
    placeOf(after, (id) => seqOfFile(deps, tenant, id)),
    (place) => ({ ...query, limit: limit + 1, after: place }),
  )
