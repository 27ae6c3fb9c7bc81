import { Effect, Schema } from "effect"
import {
  type ApiError,
  apiError,
  defineEndpoint,
  freePlan,
  type PortError,
  type Reply,
  type Tenant,
  type WhenStarted,
} from "../../../core/index.ts"
import { accountQuery, readAccount } from "../dashboard/query.ts"
import type { LedgerDeps } from "../deps.ts"
import { findCall } from "./receipt-rows.ts"
import { receiptOf } from "./to-receipt.ts"

const ReceiptReply = Schema.Struct({
  object: Schema.Literal("receipt"),
  jws: Schema.String.annotate({
    description: "Compact JWS (EdDSA); its keys are at /.well-known/jwks.json.",
  }),
}).annotate({ identifier: "Receipt" })

const receipt = (
  deps: LedgerDeps,
  id: string,
  account: string,
  mode?: Tenant["mode"],
): Effect.Effect<Reply, ApiError | PortError> =>
  Effect.gen(function* () {
    yield* deps.drained
    const call = yield* findCall(deps.database, id, account, mode)
    if (!call) return yield* apiError("not_found", "There is no such call.", { param: "call_id" })
    if (call.state === "open")
      return yield* apiError("conflict", "The call has not ended yet.", { param: "call_id" })
    const jws = yield* deps.signer.sign("receipt", receiptOf(call, deps.deployment.baseUrl))
    return { status: 200, json: { object: "receipt", jws } }
  })

const common = { method: "GET", body: "none", maxBodyBytes: 0, reply: ReceiptReply } as const

/**
 * Any key of the account may ask; test keys see calls of test keys only, live keys those of live
 * keys.
 */
export const keyReceiptEndpoint = (started: WhenStarted<LedgerDeps>) =>
  defineEndpoint({
    ...common,
    id: "receipts.get",
    summary:
      "A signed receipt of a call that ended: what it used, at which prices, and what it cost.",
    path: "/v1/receipts/{call_id}",
    access: "key",
    plan: ({ caller, params }) =>
      Effect.flatMap(started, (deps) => {
        if (!caller) return Effect.fail(apiError("authentication_error"))
        const { account, mode } = caller.tenant
        const reply = receipt(deps, params.call_id ?? "", account, mode)
        return Effect.succeed(freePlan(reply, Effect.as(reply, true)))
      }),
  })

export const sessionReceiptEndpoint = (started: WhenStarted<LedgerDeps>) =>
  defineEndpoint({
    ...common,
    id: "dashboard.receipt",
    summary: "The same receipt for the dashboard.",
    path: "/dashboard/receipts/{call_id}",
    query: Schema.Struct({ account: accountQuery }),
    access: "session",
    plan: ({ caller, params, query }) =>
      Effect.map(Effect.all([started, readAccount(query, caller)]), ([deps, account]) =>
        freePlan(receipt(deps, params.call_id ?? "", account)),
      ),
  })
