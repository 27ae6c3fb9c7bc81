import { Effect } from "effect"
import {
  type ApiError,
  apiError,
  isId,
  type KeyIssuer,
  type ListedKey,
  type PortError,
} from "../../core/index.ts"
import { makeApiKey } from "./api-key.ts"
import type { AccountsDeps } from "./deps.ts"
import { parseEmail } from "./email.ts"
import { type KeyRow, makeKeyStore } from "./keys/key-store.ts"
import { insertKey, revokeRow } from "./keys/record-key.ts"
import { checkScopes } from "./keys/scopes.ts"
import { isKeyName, keyNameRule } from "./plain-text.ts"
import { limitsOf } from "./settings.ts"
import type { AccountTable } from "./tables.ts"

export type KeyIssuerDeps = Pick<
  AccountsDeps,
  "database" | "accounts" | "keys" | "audit" | "ids" | "clock" | "settings" | "endpoints"
>

const actor = "cli"
const maxListed = 1_000

const checkName = (name: string) =>
  isKeyName(name)
    ? Effect.succeed(name.trim())
    : Effect.fail(apiError("invalid_request_error", `name: ${keyNameRule}.`, { param: "name" }))

const toListed = (row: KeyRow): ListedKey => ({
  id: row.id,
  name: row.name,
  prefix: row.prefix,
  account: row.account_id,
  test: row.mode === "test",
  scopes: row.scopes,
  createdMs: row.created_at.getTime(),
  lastUsedMs: row.last_used_at?.getTime(),
  revokedMs: row.revoked_at?.getTime(),
})

export const makeKeyIssuer = (deps: KeyIssuerDeps): KeyIssuer => {
  const { accounts, database, endpoints, ids, clock } = deps
  const store = makeKeyStore(database)
  const accountFor = (
    email: string | undefined,
  ): Effect.Effect<AccountTable, ApiError | PortError> =>
    Effect.gen(function* () {
      if (email === undefined)
        return (
          (yield* accounts.first()) ??
          (yield* apiError(
            "not_found",
            "There is no account yet. The first start of the server makes one.",
          ))
        )
      const address = parseEmail(email)
      const account = address === undefined ? undefined : yield* accounts.byEmail(address)
      return (
        account ??
        (yield* apiError("not_found", "There is no account with this e-mail address.", {
          param: "email",
        }))
      )
    })
  return {
    issue: (request) =>
      Effect.gen(function* () {
        const name = yield* checkName(request.name)
        const scopes = yield* checkScopes(request.scopes ?? ["*"], endpoints())
        const { id: account } = yield* accountFor(request.email)
        const mode = request.test ? "test" : "live"
        const key = {
          id: ids.make("key_"),
          account,
          name,
          key: makeApiKey(mode),
          mode,
          scopes,
          limits: limitsOf(deps.settings),
          createdMs: clock.nowMs(),
        } as const
        yield* database.transaction((tx) => insertKey(deps, actor, key, tx))
        return { id: key.id, key: key.key, name, account }
      }),
    list: ({ email }) =>
      Effect.flatMap(accountFor(email), ({ id }) =>
        Effect.map(store.list(id, maxListed), (rows) => rows.map(toListed)),
      ),
    revoke: (id) =>
      Effect.gen(function* () {
        const found = isId(id) ? yield* store.get(id) : undefined
        if (!found)
          return yield* apiError("not_found", "There is no such key. `rakit keys list` shows them.")
        return yield* database.transaction((tx) =>
          Effect.gen(function* () {
            const row = yield* store.lock(found.account_id, id, tx)
            return toListed(row ? yield* revokeRow(deps, actor, row, tx) : found)
          }),
        )
      }),
  }
}
