import { Effect } from "effect"
import {
  type Call,
  defineEndpoint,
  freePlan,
  megabyte,
  type Transaction,
  type WhenStarted,
} from "../../../core/index.ts"
import type { AccountsDeps } from "../deps.ts"
import type { AccountTable } from "../tables.ts"
import { AccountReply } from "../to-account.ts"
import { VerifyBody } from "./bodies.ts"
import { redeem } from "./redeem.ts"
import { showAccount } from "./show-account.ts"

const confirm = ({ accounts, audit, clock }: AccountsDeps, before: AccountTable, tx: Transaction) =>
  Effect.gen(function* () {
    if (before.verified_at) return before
    yield* audit.record(
      {
        actor: before.id,
        action: "account.verify",
        target: before.id,
        before: { email_verified: false },
        after: { email_verified: true },
      },
      tx,
    )
    return yield* accounts.change(before.id, { verified_at: new Date(clock.nowMs()) }, tx)
  })

const verify = (deps: AccountsDeps, { body }: Call<VerifyBody>) =>
  Effect.gen(function* () {
    const account = yield* deps.tokens.find(body.token, "verify")
    const row = yield* redeem(deps, body.token, "verify", account, (before, tx) =>
      confirm(deps, before, tx),
    )
    return { status: 200, json: yield* showAccount(deps, row) }
  })

export const verifyEmailEndpoint = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint<VerifyBody>({
    id: "dashboard.verify-email",
    summary: "Confirms an e-mail address with the token that was mailed to it.",
    method: "POST",
    path: "/dashboard/verify-email",
    access: "public",
    body: VerifyBody,
    maxBodyBytes: megabyte,
    reply: AccountReply,
    plan: (call) => Effect.map(started, (deps) => freePlan(verify(deps, call))),
  })
