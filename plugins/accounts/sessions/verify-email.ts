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
import { VerifyBody, VerifyReply } from "./bodies.ts"
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

/**
 * Mailboxes and people open links twice: a link that was valid for an address that is confirmed
 * now is no error.
 */
const alreadyConfirmed = ({ accounts, tokens }: AccountsDeps, token: string) =>
  Effect.gen(function* () {
    const account = yield* tokens.spent(token, "verify")
    const row = account === undefined ? undefined : yield* accounts.byId(account)
    return row?.verified_at ? row : undefined
  })

const verify = (deps: AccountsDeps, { body }: Call<VerifyBody>) =>
  Effect.gen(function* () {
    const before = yield* alreadyConfirmed(deps, body.token)
    if (before)
      return {
        status: 200,
        json: { ...(yield* showAccount(deps, before)), already_verified: true },
      }
    const account = yield* deps.tokens.find(body.token, "verify")
    const row = yield* redeem(deps, body.token, "verify", account, (before, tx) =>
      confirm(deps, before, tx),
    )
    return { status: 200, json: yield* showAccount(deps, row) }
  })

export const verifyEmailEndpoint = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint<VerifyBody>({
    id: "dashboard.verify-email",
    summary:
      "Confirms an e-mail address with the token that was mailed to it. The same link once more is fine.",
    method: "POST",
    path: "/dashboard/verify-email",
    access: "public",
    body: VerifyBody,
    maxBodyBytes: megabyte,
    reply: VerifyReply,
    plan: (call) => Effect.map(started, (deps) => freePlan(verify(deps, call))),
  })
