import { Effect } from "effect"
import { type ApiError, apiError, type Endpoint } from "../../../core/index.ts"

/** The ids of the endpoints that keys call. */
export const scopesOf = (endpoints: readonly Endpoint[]): readonly string[] =>
  endpoints.filter(({ access }) => access === "key").map(({ id }) => id)

/** Checks scopes: `*`, or ids of endpoints whose access is `key`. Removes duplicates. */
export const checkScopes = (
  scopes: readonly string[],
  endpoints: readonly Endpoint[],
): Effect.Effect<readonly string[], ApiError> => {
  const known = new Set(["*", ...scopesOf(endpoints)])
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

/**
 * Checks the models that a key may use: names that are served, with which their adapters
 * (`svc-lyt:legal`) go. Removes duplicates.
 */
export const checkModels = (
  models: readonly string[],
  served: readonly string[],
): Effect.Effect<readonly string[], ApiError> => {
  const wrong = models.findIndex((model) => !served.includes(model))
  if (wrong < 0) return Effect.succeed([...new Set(models)])
  const param = `models[${wrong}]`
  const base = served.find((id) => models[wrong]!.startsWith(`${id}:`))
  const why = base
    ? `keys go by the model, not by an adapter: name '${base}'`
    : "there is no such model"
  return Effect.fail(apiError("invalid_request_error", `${param}: ${why}`, { param }))
}

/** Checks when a key expires, in Unix seconds. */
export const checkExpiry = (seconds: number, nowMs: number): Effect.Effect<number, ApiError> =>
  seconds * 1000 > nowMs
    ? Effect.succeed(seconds * 1000)
    : Effect.fail(
        apiError("invalid_request_error", "expires_at: expected a time in the future", {
          param: "expires_at",
        }),
      )
