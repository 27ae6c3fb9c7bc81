import { Effect, Schema } from "effect"
import {
  type ApiError,
  type PortError,
  pageQuery,
  placeOf,
  type Tenant,
  wordQuery,
} from "../../../core/index.ts"
import type { FilesDeps } from "../deps.ts"
import { type FileListing, seqOfFile } from "./file-rows.ts"
import { PurposeFilter, purposeOf } from "./purpose.ts"

export const ListQuery = Schema.Struct({
  ...pageQuery,
  order: wordQuery(["desc", "asc"]),
  purpose: Schema.optionalKey(PurposeFilter),
})
type ListQuery = typeof ListQuery.Type

/** Asks for one row more than the page has, which tells whether there is a next page. */
export const toListing = (
  deps: FilesDeps,
  tenant: Tenant,
  { after, limit, order, purpose }: ListQuery,
): Effect.Effect<FileListing, ApiError | PortError> =>
  Effect.map(
    placeOf(after || undefined, (id) => seqOfFile(deps, tenant, id)),
    (place) => ({
      order,
      limit: limit + 1,
      after: place,
      purpose: purpose === undefined ? undefined : purposeOf(purpose),
    }),
  )
