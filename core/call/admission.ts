import { Effect } from "effect"
import type { CallInput, CallPathParts } from "../call.ts"
import type { Caller } from "../caller.ts"
import type { Endpoint } from "../endpoint.ts"
import { ApiError, type PortError } from "../errors.ts"
import type { Strings } from "../json.ts"
import type { AdmitRequest, RateState } from "../ports/billing.ts"
import type { Prepared } from "./prepare.ts"
import { rateHeaders, refusalError } from "./refusal.ts"
import { seal } from "./seal.ts"

export const withErrorHeaders = (error: ApiError, headers: Strings): ApiError => new ApiError({ ...error, message: error.message, headers: { ...headers, ...error.headers } })

type Hold = Pick<AdmitRequest, "id" | "holdMicros" | "counts" | "expiresMs" | "model" | "prices">

/** A call may need some time after its deadline to end and to settle. */
const graceMs = 60_000

export const holdOf = ({ call, holdMicros, prices, deadlineMs }: Prepared): Omit<Hold, "counts"> => ({
  id: call.id,
  holdMicros,
  prices,
  model: Object.keys(prices.models)[0],
  expiresMs: deadlineMs + graceMs,
})

export const admission = (parts: CallPathParts, endpoint: Endpoint, input: CallInput, caller: Caller, hold: Hold): Effect.Effect<RateState, ApiError | PortError> => {
  const parent = input.parent === undefined ? {} : { parent: input.parent }
  const admitted = parts.billing().admit({ ...hold, ...parent, caller, endpoint: endpoint.id, requestId: input.requestId })
  return Effect.catchTag(admitted, "Refusal", (refusal) => Effect.fail(withErrorHeaders(refusalError(refusal), { "x-call-id": hold.id })))
}

/** Only looks: counts and holds nothing. Fails as a call with this hold would. */
export const look = (parts: CallPathParts, endpoint: Endpoint, input: CallInput, caller: Caller, holdMicros = 0n) =>
  admission(parts, endpoint, input, caller, { id: parts.ids.call(), holdMicros, counts: "none" })

const hasRateHeaders = (error: ApiError) => error.headers !== undefined && "x-ratelimit-limit-requests" in error.headers

/** A keyed request that is refused before its admission shows a call id and the rate headers too, and counts toward nothing. */
export const withRateHeaders = <A, R>(parts: CallPathParts, endpoint: Endpoint, input: CallInput, effect: Effect.Effect<A, ApiError, R>): Effect.Effect<A, ApiError, R> => {
  const { caller } = input
  if (!caller || endpoint.access !== "key") return effect
  const looking = Effect.suspend(() => seal(parts.log)(look(parts, endpoint, input, caller)))
  return effect.pipe(
    Effect.catchTag("ApiError", (error) =>
      hasRateHeaders(error) ? Effect.fail(error) : Effect.flatMap(looking, (rate) => Effect.fail(withErrorHeaders(error, { "x-call-id": parts.ids.call(), ...rateHeaders(rate) }))),
    ),
  )
}
