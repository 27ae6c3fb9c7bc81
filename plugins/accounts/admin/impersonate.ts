import { Effect, Schema } from "effect"
import {
  type ApiError,
  apiError,
  type Caller,
  defineEndpoint,
  type Endpoint,
  freePlan,
  isId,
  megabyte,
  type PortError,
  type Transaction,
  type WhenStarted,
} from "../../../core/index.ts"
import { makeApiKey } from "../api-key.ts"
import type { AccountsDeps } from "../deps.ts"
import { callerOf, sessionOf } from "../session-caller.ts"
import { Nothing } from "../sessions/ask-for-mail.ts"
import { showAccount } from "../sessions/show-account.ts"
import { limitsOf } from "../settings.ts"
import type { AccountTable } from "../tables.ts"
import { AccountReply } from "../to-account.ts"
import { lockFor, noSuchAccount } from "./change-account.ts"
import { Reason } from "./grant.ts"

/** How long an administrator sees an account. */
export const viewSeconds = 30 * 60

export const Impersonate = Schema.Struct({ reason: Reason }).annotate({ identifier: "Impersonate" })
export type Impersonate = typeof Impersonate.Type

const View = Schema.Struct({
  token: Schema.String.annotate({ description: "A session of the account that may only read." }),
  api_key: Schema.String.annotate({
    description: "For `GET` below `/v1`, as long as the session.",
  }),
  expires_at: Schema.Int.annotate({ description: "Unix seconds." }),
  account: AccountReply,
}).annotate({ identifier: "AccountView" })

type Failure = ApiError | PortError

const refusal = (row: AccountTable, actor: string): ApiError | undefined => {
  if (row.id === actor) return apiError("conflict", "This is your own account.")
  if (row.role === "admin") return apiError("conflict", "Accounts of administrators are not shown.")
  return row.deleted_at ? apiError("conflict", "The account was deleted.") : undefined
}

/** Reads what keys read. It is on no list, and leaves no record but that of the view. */
const insertKey = (
  deps: AccountsDeps,
  account: string,
  session: string,
  expiresAt: number,
  tx: Transaction,
) => {
  const key = makeApiKey("live")
  const reading = deps
    .endpoints()
    .filter(({ access, method }) => access === "key" && method === "GET")
  const row = {
    ...{ id: deps.ids.make("key_"), account, name: "Read-only view", key, mode: "live" as const },
    ...{ limits: limitsOf(deps.settings), scopes: reading.map(({ id }) => id) },
    ...{ createdMs: deps.clock.nowMs(), expiresMs: expiresAt * 1000, playground: true, session },
  }
  return Effect.as(deps.keys.insert(row, tx), key)
}

/** One at a time in each of the administrator's sessions, and over when that is. */
const begin = (deps: AccountsDeps, caller: Caller, id: string, tx: Transaction, reason: string) =>
  Effect.gen(function* () {
    const actor = caller.tenant.account
    const row = yield* lockFor(deps, actor, id, tx)
    const refused = refusal(row, actor)
    if (refused) return yield* refused
    const own = yield* deps.sessionRows.keep(sessionOf(caller)?.id ?? "", tx)
    if (!own) return yield* apiError("conflict", "Your own session is an old one. Sign in again.")
    const untilMs = Math.min(deps.clock.nowMs() + viewSeconds * 1000, own.expires_at.getTime())
    const expiresAt = Math.floor(untilMs / 1000)
    const parent = own.id
    const ended = yield* deps.sessionRows.endViews({ actor, parent }, "replaced", tx)
    const viewer = { id: deps.ids.make("sess_"), actor, parent, expiresAt }
    const { token } = yield* deps.sessions.view(row, viewer, tx)
    const key = yield* insertKey(deps, id, viewer.id, expiresAt, tx)
    const after = { session: viewer.id, reason: reason.trim(), expires_at: expiresAt }
    yield* deps.audit.record({ actor, action: "account.impersonate", target: id, after }, tx)
    return { row, ended, token, key, expiresAt }
  })

const impersonate = (deps: AccountsDeps, caller: Caller, id: string, { reason }: Impersonate) =>
  Effect.gen(function* () {
    if (!isId(id)) return yield* noSuchAccount()
    const begun = yield* deps.database.transaction((tx) => begin(deps, caller, id, tx, reason))
    for (const session of begun.ended) deps.keyChanges.announce({ session })
    return {
      status: 200,
      headers: { "cache-control": "no-store" },
      json: {
        token: begun.token,
        api_key: begun.key,
        expires_at: begun.expiresAt,
        account: yield* showAccount(deps, begun.row),
      },
    }
  }).pipe(Effect.uninterruptible)

/** Idempotent. */
const leave = (deps: AccountsDeps, caller: Caller): Effect.Effect<void, Failure> =>
  Effect.gen(function* () {
    const { keyChanges, sessionRows } = deps
    const views = { actor: caller.tenant.account, parent: sessionOf(caller)?.id ?? "" }
    const ended = yield* deps.database.transaction((tx) => sessionRows.endViews(views, "left", tx))
    for (const session of ended) keyChanges.announce({ session })
  }).pipe(Effect.uninterruptible)

/** An administrator sees an account as its owner does, and can change nothing in it. */
export const impersonateEndpoints = (started: WhenStarted<AccountsDeps>): readonly Endpoint[] => [
  defineEndpoint<Impersonate>({
    id: "admin.accounts.impersonate",
    summary:
      "A session of the account, for 30 minutes, that may only read. The reason is recorded.",
    method: "POST",
    path: "/admin/accounts/{id}/impersonate",
    access: "admin",
    body: Impersonate,
    maxBodyBytes: megabyte,
    reply: View,
    plan: (call) =>
      Effect.map(Effect.all([started, callerOf(call)]), ([deps, caller]) =>
        freePlan(impersonate(deps, caller, call.params.id ?? "", call.body)),
      ),
  }),
  defineEndpoint({
    id: "admin.end-impersonation",
    summary: "Ends what this session sees of another account.",
    method: "POST",
    path: "/admin/end-impersonation",
    access: "admin",
    body: "none",
    maxBodyBytes: megabyte,
    reply: Nothing,
    plan: (call) =>
      Effect.map(Effect.all([started, callerOf(call)]), ([deps, caller]) =>
        freePlan(Effect.as(leave(deps, caller), { status: 200, json: {} })),
      ),
  }),
]
