import { Effect } from "effect"
import { apiError, type Clock, type Ids, type KeyIssuer, type Limits } from "../../core/index.ts"
import type { AccountRows } from "./account-rows.ts"
import { makeApiKey } from "./api-key.ts"
import { parseEmail } from "./email.ts"
import type { KeyRows } from "./key-rows.ts"

export interface KeyIssuerParts {
  readonly accounts: AccountRows
  readonly keys: KeyRows
  readonly ids: Ids
  readonly clock: Clock
  readonly limits: Limits
}

const maxNameCharacters = 100

const checkName = (name: string) =>
  name.trim() !== "" && [...name].length <= maxNameCharacters && !/[\p{Cc}\p{Cs}]/u.test(name)
    ? Effect.succeed(name.trim())
    : Effect.fail(apiError("invalid_request_error", `name: must be 1 to ${maxNameCharacters} characters, without control characters.`, { param: "name" }))

export const makeKeyIssuer = ({ accounts, keys, ids, clock, limits }: KeyIssuerParts): KeyIssuer => {
  const accountFor = (email: string | undefined) =>
    Effect.gen(function* () {
      if (email === undefined) return (yield* accounts.first()) ?? (yield* apiError("not_found", "There is no account yet. The first start of the server makes one."))
      const address = parseEmail(email)
      const account = address === undefined ? undefined : yield* accounts.byEmail(address)
      return account ?? (yield* apiError("not_found", "There is no account with this e-mail address.", { param: "email" }))
    })
  return {
    issue: (request) =>
      Effect.gen(function* () {
        const name = yield* checkName(request.name)
        const account = yield* accountFor(request.email)
        const mode = request.test ? "test" : "live"
        const key = makeApiKey(mode)
        const id = ids.make("key_")
        yield* keys.insert({ id, account: account.id, name, key, mode, limits, createdMs: clock.nowMs() })
        return { id, key, name, account: account.id }
      }),
  }
}
