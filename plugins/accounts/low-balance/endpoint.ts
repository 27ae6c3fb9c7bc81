import { Effect, Schema } from "effect"
import {
  apiError,
  type Call,
  defineEndpoint,
  freePlan,
  megabyte,
  parseRupiah,
  type WhenStarted,
} from "../../../core/index.ts"
import type { AccountsDeps } from "../deps.ts"
import { ownAccount, showAccount } from "../sessions/show-account.ts"
import { AccountReply } from "../to-account.ts"

const maxIdr = 1e12

const LowBalanceBody = Schema.Struct({
  low_balance_idr: Schema.NullOr(
    Schema.Finite.check(
      Schema.makeFilter(
        (idr: number) =>
          (/^\d{1,13}(\.\d{1,6})?$/.test(String(idr)) && idr > 0 && idr <= maxIdr) ||
          `expected an amount in Rp above 0, with at most 6 decimals, up to ${maxIdr}`,
      ),
    ),
  ).annotate({ description: "In Rp; null: no mail." }),
}).annotate({ identifier: "LowBalance" })
type LowBalanceBody = typeof LowBalanceBody.Type

const setThreshold = (deps: AccountsDeps, { body, caller }: Call<LowBalanceBody>) =>
  Effect.gen(function* () {
    const own = yield* ownAccount(deps, caller)
    const idr = body.low_balance_idr
    // a new threshold is a new question: a mail may follow at once
    const low_balance_micros = idr === null ? null : String(parseRupiah(String(idr)))
    const changed = yield* deps.database.transaction((tx) =>
      deps.accounts.change(own.id, { low_balance_micros, low_balance_mailed_at: null }, tx),
    )
    const row = changed ?? (yield* apiError("authentication_error"))
    return { status: 200, json: yield* showAccount(deps, row) }
  })

export const lowBalanceEndpoint = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint<LowBalanceBody>({
    id: "dashboard.low-balance",
    summary: "Sets the balance below which the account's owner gets a mail, once each time.",
    method: "POST",
    path: "/dashboard/low-balance",
    access: "session",
    body: LowBalanceBody,
    maxBodyBytes: megabyte,
    reply: AccountReply,
    plan: (call) => Effect.map(started, (deps) => freePlan(setThreshold(deps, call))),
  })
