import { Effect } from "effect"
import type { Caller } from "../caller.ts"
import { ApiError, type PortError } from "../errors.ts"
import type { Strings } from "../json.ts"
import type { AdmitRequest, RateState } from "../ports/billing.ts"
import type { Endpoint } from "../ports/endpoint.ts"
import type { CallInput, CallPathDeps } from "./contract.ts"
import type { Prepared } from "./prepare.ts"
import { refusalError } from "./refusal.ts"

export const withErrorHeaders = (error: ApiError, headers: Strings): ApiError =>
  new ApiError({ ...error, message: error.message, headers: { ...headers, ...error.headers } })

type Hold = Pick<AdmitRequest, "id" | "holdMicros" | "counts" | "expiresMs" | "model" | "prices">

/** A call may need some time after its deadline to end and to settle. */
const graceMs = 60_000

export const holdOf = (
  { call, holdMicros, prices, deadlineMs }: Prepared,
  counts: Hold["counts"],
): Hold => ({
  id: call.id,
  counts,
  holdMicros,
  prices,
  model: Object.keys(prices.models)[0],
  expiresMs: deadlineMs + graceMs,
})

export const admission = (
  deps: CallPathDeps,
  endpoint: Endpoint,
  input: CallInput,
  caller: Caller,
  hold: Hold,
): Effect.Effect<RateState, ApiError | PortError> => {
  const { requestId, parent } = input
  const admitted = deps
    .billing()
    .admit(Object.assign({ caller, endpoint: endpoint.id, requestId, parent }, hold))
  return Effect.catchTag(admitted, "Refusal", (refusal) =>
    Effect.fail(
      withErrorHeaders(refusalError(refusal), { "x-call-id": hold.id, "x-cost-idr": "0" }),
    ),
  )
}

/** Counts and holds nothing. Fails as a call with this hold would. */
export const peek = (
  deps: CallPathDeps,
  endpoint: Endpoint,
  input: CallInput,
  caller: Caller,
  holdMicros = 0n,
) => admission(deps, endpoint, input, caller, { id: deps.ids.call(), holdMicros, counts: "peek" })
