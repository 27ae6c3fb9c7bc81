import { Effect, Schema } from "effect"
import { type ApiError, apiError, badQuery, type Caller, isId } from "../../../core/index.ts"

export const accountQuery = Schema.optionalKey(
  Schema.String.annotate({ description: "Id of another account, for administrators." }),
)

/** Reads `?account=`: the session's own by default; only an administrator may name another. */
export const readAccount = (
  query: { readonly account?: string },
  caller: Caller | undefined,
): Effect.Effect<string, ApiError> => {
  if (!caller) return Effect.fail(apiError("authentication_error"))
  const { account = caller.tenant.account } = query
  if (account !== caller.tenant.account && caller.role !== "admin")
    return Effect.fail(
      apiError("permission_denied", "Only an administrator may ask for another account.", {
        param: "account",
      }),
    )
  return isId(account)
    ? Effect.succeed(account)
    : Effect.fail(badQuery("account", "must be the id of an account"))
}
