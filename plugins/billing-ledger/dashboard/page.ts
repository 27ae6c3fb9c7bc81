import { Effect } from "effect"
import type { ApiError, Strings } from "../../../core/index.ts"
import { badQuery } from "./query.ts"

export interface Page {
  readonly limit: number
  /** The id of the last item that the caller has seen. */
  readonly after: string | undefined
}

const defaultLimit = 20
const maxLimit = 100

/** `?limit=` (20 unless told) and `?after=`. */
export const readPage = ({ limit = String(defaultLimit), after }: Strings): Effect.Effect<Page, ApiError> => {
  const count = /^\d{1,3}$/.test(limit) ? Number(limit) : 0
  if (count < 1 || count > maxLimit) return Effect.fail(badQuery("limit", `must be a whole number from 1 to ${maxLimit}`))
  return Effect.succeed({ limit: count, after })
}
