import { Effect } from "effect"
import { defineEndpoint, freePlan, type WhenStarted } from "../../../core/index.ts"
import type { AccountsDeps } from "../deps.ts"
import { AccountReply } from "../to-account.ts"
import { ownAccount, showAccount } from "./show-account.ts"

export const meEndpoint = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint({
    id: "dashboard.me",
    summary: "The account of the session.",
    method: "GET",
    path: "/dashboard/me",
    access: "session",
    body: "none",
    maxBodyBytes: 0,
    reply: AccountReply,
    plan: ({ caller }) =>
      Effect.map(started, (deps) => {
        const show = Effect.flatMap(ownAccount(deps, caller), (row) => showAccount(deps, row))
        return freePlan(Effect.map(show, (json) => ({ status: 200, json })))
      }),
  })
