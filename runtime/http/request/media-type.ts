import { Effect } from "effect"
import { type ApiError, apiError } from "../../../core/errors.ts"

const jsonType = /^(application\/json|[a-z0-9!#$&^_.+-]+\/[a-z0-9!#$&^_.+-]+\+json)$/
const charset = /;\s*charset\s*=\s*"?([^\s;"]+)"?/

/** JSON endpoints take `application/json`, `anything/...+json` or no type at all, in UTF-8. */
export const requireJsonType = (contentType: string | undefined): Effect.Effect<void, ApiError> => {
  if (contentType === undefined || contentType === "") return Effect.void
  const lower = contentType.toLowerCase()
  const type = lower.split(";", 1)[0]!.trim()
  const coding = charset.exec(lower)?.[1] ?? "utf-8"
  if (jsonType.test(type) && (coding === "utf-8" || coding === "utf8" || coding === "us-ascii"))
    return Effect.void
  return Effect.fail(
    apiError("unsupported_media_type", "The body must be application/json in UTF-8."),
  )
}
