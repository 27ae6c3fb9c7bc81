import { Effect, Schema } from "effect"
import {
  type Caller,
  defineEndpoint,
  type Endpoint,
  firstOf,
  freePlan,
  listSchema,
  megabyte,
  type Page,
  type PortError,
  pageQuery,
  placeOf,
  type Reply,
  toList,
  type WhenStarted,
} from "../../../core/index.ts"
import { auditEndpoint } from "../audit/endpoint.ts"
import type { AccountsDeps } from "../deps.ts"
import { textFilter } from "../list-query.ts"
import { callerOf } from "../session-caller.ts"
import { AccountReply, toAccount } from "../to-account.ts"
import { findAccount, type ListedAccount, listAccounts } from "./account-list.ts"
import {
  type AccountAction,
  changeAccount,
  changeRole,
  suspend,
  unsuspend,
  verify,
} from "./change-account.ts"
import { Grant, grant } from "./grant.ts"

const common = { access: "admin", maxBodyBytes: megabyte } as const
const post = { ...common, method: "POST", reply: AccountReply } as const
const maxQueryCharacters = 200

const shown = (deps: AccountsDeps, row: ListedAccount): Effect.Effect<AccountReply, PortError> =>
  Effect.map(deps.billing.balance(row.id), (balance) => toAccount(row, balance))

const replyWith = (deps: AccountsDeps, row: ListedAccount): Effect.Effect<Reply, PortError> =>
  Effect.map(shown(deps, row), (json) => ({ status: 200, json }))

const page = (deps: AccountsDeps, q: string | undefined, wanted: Page) =>
  Effect.gen(function* () {
    const after = yield* placeOf(wanted.after, (id) =>
      Effect.map(deps.accounts.byId(id), (row) => row?.id),
    )
    const named = q === undefined ? undefined : yield* findAccount(deps.database, q)
    if (named)
      return {
        status: 200,
        json: toList(after === undefined ? [yield* shown(deps, named)] : [], false),
      }
    const { rows, hasMore } = firstOf(
      yield* listAccounts(deps.database, q, wanted.limit + 1, after),
      wanted,
    )
    const data = yield* Effect.forEach(rows, (row) => shown(deps, row), { concurrency: 4 })
    return { status: 200, json: toList(data, hasMore) }
  })

const list = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint({
    ...common,
    id: "admin.accounts.list",
    summary: "Accounts, newest first; `q` is a part of the e-mail, or an id.",
    method: "GET",
    path: "/admin/accounts",
    body: "none",
    reply: listSchema(AccountReply, "AccountList"),
    query: Schema.Struct({ ...pageQuery, q: textFilter(maxQueryCharacters) }),
    plan: ({ query }) =>
      Effect.map(started, (deps) => freePlan(page(deps, query.q || undefined, query))),
  })

const changing = (
  deps: AccountsDeps,
  caller: Caller,
  id: string | undefined,
  action: AccountAction,
) =>
  freePlan(
    Effect.flatMap(changeAccount(deps, caller, id ?? "", action), (row) => replyWith(deps, row)),
  )

const simple = (
  started: WhenStarted<AccountsDeps>,
  verb: string,
  summary: string,
  action: AccountAction,
) =>
  defineEndpoint({
    ...post,
    id: `admin.accounts.${verb}`,
    summary,
    path: `/admin/accounts/{id}/${verb}`,
    body: "none",
    plan: (call) =>
      Effect.map(Effect.all([started, callerOf(call)]), ([deps, caller]) =>
        changing(deps, caller, call.params.id, action),
      ),
  })

const Role = Schema.Struct({ role: Schema.Literals(["user", "admin"]) }).annotate({
  identifier: "ChangeRole",
})

const role = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint({
    ...post,
    id: "admin.accounts.role",
    summary: "Makes an account an admin's, or a user's.",
    path: "/admin/accounts/{id}/role",
    body: Role,
    plan: (call) =>
      Effect.map(Effect.all([started, callerOf(call)]), ([deps, caller]) =>
        changing(deps, caller, call.params.id, changeRole(call.body.role)),
      ),
  })

const grants = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint({
    ...post,
    id: "admin.accounts.grant",
    summary: "Adds to a balance, or takes from it, with a reason.",
    path: "/admin/accounts/{id}/grants",
    body: Grant,
    creates: true,
    plan: (call) =>
      Effect.map(Effect.all([started, callerOf(call)]), ([deps, caller]) =>
        freePlan(
          Effect.flatMap(grant(deps, caller, call.params.id ?? "", call.body), (row) =>
            replyWith(deps, row),
          ),
        ),
      ),
  })

/** The endpoints `/admin/*`. */
export const adminEndpoints = (started: WhenStarted<AccountsDeps>): readonly Endpoint[] => [
  list(started),
  simple(started, "verify", "Takes an account's e-mail address as verified.", verify),
  simple(started, "suspend", "Suspends an account: its keys are refused.", suspend),
  simple(started, "unsuspend", "Ends a suspension.", unsuspend),
  role(started),
  grants(started),
  auditEndpoint(started),
]
