import { Effect, Schema } from "effect"
import {
  type Caller,
  defineEndpoint,
  type Endpoint,
  freePlan,
  isId,
  listSchema,
  megabyte,
  PageQuery,
  type PortError,
  type Reply,
  type WhenStarted,
} from "../../../core/index.ts"
import { auditEndpoint } from "../audit/endpoint.ts"
import type { AccountsDeps } from "../deps.ts"
import { keyPage } from "../keys/endpoints.ts"
import { KeyList } from "../keys/wire.ts"
import { callerOf } from "../session-caller.ts"
import { AccountReply } from "../to-account.ts"
import type { ListedAccount } from "./account-list.ts"
import { AccountQuery, accountPage, shown } from "./account-page.ts"
import {
  type AccountAction,
  changeAccount,
  changeRole,
  endTwoFactor,
  noSuchAccount,
  suspend,
  unsuspend,
  verify,
} from "./change-account.ts"
import { Grant, grant } from "./grant.ts"
import { impersonateEndpoints } from "./impersonate.ts"

const common = { access: "admin", maxBodyBytes: megabyte } as const
const post = { ...common, method: "POST", reply: AccountReply } as const

const replyWith = (deps: AccountsDeps, row: ListedAccount): Effect.Effect<Reply, PortError> =>
  Effect.map(shown(deps, row), (json) => ({ status: 200, json }))

const list = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint({
    ...common,
    id: "admin.accounts.list",
    summary: "Accounts, newest first; `q` is a part of the e-mail, or an id (other filters aside).",
    method: "GET",
    path: "/admin/accounts",
    body: "none",
    reply: listSchema(AccountReply, "AccountList"),
    query: AccountQuery,
    plan: ({ query }) => Effect.map(started, (deps) => freePlan(accountPage(deps, query))),
  })

const keys = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint({
    ...common,
    id: "admin.accounts.keys",
    summary: "An account's keys, newest first; never the keys themselves.",
    method: "GET",
    path: "/admin/accounts/{id}/keys",
    body: "none",
    reply: KeyList,
    query: PageQuery,
    plan: ({ params: { id = "" }, query }) =>
      Effect.map(started, (deps) =>
        freePlan(
          Effect.gen(function* () {
            const account = isId(id) ? yield* deps.accounts.byId(id) : undefined
            return yield* account ? keyPage(deps, account.id, query) : noSuchAccount()
          }),
        ),
      ),
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
  keys(started),
  simple(started, "verify", "Takes an account's e-mail address as verified.", verify),
  simple(started, "suspend", "Suspends an account: its keys are refused.", suspend),
  simple(started, "unsuspend", "Ends a suspension.", unsuspend),
  simple(
    started,
    "end-two-factor",
    "Lets an account sign in without codes: its owner has lost the phone.",
    endTwoFactor,
  ),
  role(started),
  grants(started),
  ...impersonateEndpoints(started),
  auditEndpoint(started),
]
