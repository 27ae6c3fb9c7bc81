import { Effect } from "effect"
import { type ApiError, apiError, type FilePurpose, type PortError, type Strings, type Tenant } from "../../core/index.ts"
import { type FileListing, placeOfFile } from "./file-rows.ts"
import type { FilesHouse } from "./house.ts"
import { readPurposeFilter } from "./purpose.ts"

export interface ListQuery {
  readonly limit: number
  readonly order: "asc" | "desc"
  readonly after: string | undefined
  readonly purpose: FilePurpose | undefined
}

const maxLimit = 100
const bad = (param: string, rule: string) => Effect.fail(apiError("invalid_request_error", `${param}: ${rule}`, { param }))

export const readListQuery = ({ limit = "20", order = "desc", after, purpose }: Strings): Effect.Effect<ListQuery, ApiError> =>
  Effect.gen(function* () {
    const count = /^\d{1,3}$/.test(limit) ? Number(limit) : 0
    if (count < 1 || count > maxLimit) return yield* bad("limit", `must be a whole number from 1 to ${maxLimit}`)
    if (order !== "asc" && order !== "desc") return yield* bad("order", "must be asc or desc")
    return { limit: count, order, after: after === "" ? undefined : after, purpose: yield* readPurposeFilter(purpose) }
  })

/** One row more than the page has: whether it is there says whether there is more. */
export const toListing = (house: FilesHouse, tenant: Tenant, { after, limit, ...query }: ListQuery): Effect.Effect<FileListing, ApiError | PortError> =>
  Effect.gen(function* () {
    if (after === undefined) return { ...query, limit: limit + 1, after: undefined }
    const place = yield* placeOfFile(house, tenant, after)
    if (place === undefined) return yield* bad("after", "there is no such file")
    return { ...query, limit: limit + 1, after: place }
  })
