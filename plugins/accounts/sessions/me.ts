import { Effect } from "effect"
import { defineEndpoint } from "../../../core/index.ts"
import { freePlan } from "../free-plan.ts"
import type { OpenHouse } from "../house.ts"
import { AccountReply } from "../to-account.ts"
import { ownAccount, showAccount } from "./show-account.ts"

export const meEndpoint = (open: OpenHouse) =>
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
      Effect.sync(() => {
        const house = open()
        const show = Effect.flatMap(ownAccount(house, caller), (row) => showAccount(house, row))
        return freePlan(
          house.log,
          Effect.map(show, (json) => ({ status: 200, json })),
        )
      }),
  })
