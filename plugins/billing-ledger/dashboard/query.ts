import { Effect } from "effect"
import {
  type ApiError,
  apiError,
  badQuery,
  type Caller,
  isId,
  type Strings,
} from "../../../core/index.ts"

/** One of a few words; the first of them unless told. */
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

/** Whose numbers: the session's own account; an administrator may ask for another's. */
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
