import { Effect } from "effect"
import {
  type ApiError,
  apiError,
  badQuery,
  type Caller,
  isId,
  type Strings,
} from "../../../core/index.ts"

/** Reads a parameter that is one of `words`; the first is the default. */
export const readWord = <Word extends string>(
  query: Strings,
  param: string,
  words: readonly [Word, ...Word[]],
): Effect.Effect<Word, ApiError> => {
  const word = words.find((one) => one === (query[param] ?? words[0]))
  return word === undefined
    ? Effect.fail(badQuery(param, `must be one of ${words.join(", ")}`))
    : Effect.succeed(word)
}

/** Reads `?account=`: the session's own by default; only an administrator may name another. */
export const readAccount = (
  query: Strings,
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
