import { Effect } from "effect"
import { type ApiError, apiError, type Endpoint } from "../../../core/index.ts"

/** Checks scopes: `*`, or ids of endpoints whose access is `key`. Removes duplicates. */
export const checkScopes = (
  scopes: readonly string[],
  endpoints: readonly Endpoint[],
): Effect.Effect<readonly string[], ApiError> => {
  const known = new Set([
    "*",
    ...endpoints.filter(({ access }) => access === "key").map(({ id }) => id),
  ])
  const wrong = scopes.findIndex((scope) => !known.has(scope))
  if (wrong < 0) return Effect.succeed([...new Set(scopes)])
  const param = `scopes[${wrong}]`
  return Effect.fail(
    apiError(
      "invalid_request_error",
      `${param}: expected '*' or one of ${[...known].slice(1).join(", ")}`,
      { param },
    ),
  )
}
