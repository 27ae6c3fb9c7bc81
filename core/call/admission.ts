import { Effect } from "effect"
import type { Caller } from "../caller.ts"
import { ApiError, type PortError } from "../errors.ts"
import type { Strings } from "../json.ts"
import type { AdmitRequest, RateState } from "../ports/billing.ts"
import type { Endpoint } from "../ports/endpoint.ts"
import type { CallInput, CallPathDeps } from "./contract.ts"
import { maskInternalErrors } from "./mask-internal-errors.ts"
import type { Meter } from "./meter.ts"
import type { Prepared } from "./prepare.ts"
import { rateHeaders, refusalError } from "./refusal.ts"

export const withErrorHeaders = (error: ApiError, headers: Strings): ApiError =>
  new ApiError({ ...error, message: error.message, headers: { ...headers, ...error.headers } })

type Hold = Pick<AdmitRequest, "id" | "holdMicros" | "counts" | "expiresMs" | "model" | "prices">

/** A call may need some time after its deadline to end and to settle. */
const graceMs = 60_000

export const holdOf = ({
  call,
  holdMicros,
  prices,
  deadlineMs,
}: Prepared): Omit<Hold, "counts"> => ({
  id: call.id,
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
  const parent = input.parent === undefined ? {} : { parent: input.parent }
  const admitted = deps
    .billing()
    .admit({ ...hold, ...parent, caller, endpoint: endpoint.id, requestId: input.requestId })
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

const isNumbered = (error: ApiError) => error.headers !== undefined && "x-call-id" in error.headers
const hasRateHeaders = (error: ApiError) =>
  error.headers !== undefined && "x-ratelimit-limit-requests" in error.headers

/** What a keyed request shows however it fails: a call id, the rate headers, how long it took, and that a refused one costs nothing. One that is refused before its admission counts toward nothing. */
export const withKeyHeaders = <A, R>(
  deps: CallPathDeps,
  endpoint: Endpoint,
  input: CallInput,
  meter: Meter,
  effect: Effect.Effect<A, ApiError, R>,
): Effect.Effect<A, ApiError, R> => {
  const { caller } = input
  if (!caller || endpoint.access !== "key") return effect
  // the refusal is what the client has to know, also where nobody can say what its key has left
  const peeked = Effect.suspend(() =>
    maskInternalErrors(deps.log)(peek(deps, endpoint, input, caller)),
  ).pipe(
    Effect.map(rateHeaders),
    Effect.catch(() => Effect.succeed({})),
  )
  return effect.pipe(
    Effect.catchTag("ApiError", (error) =>
      Effect.flatMap(hasRateHeaders(error) ? Effect.succeed({}) : peeked, (rate) => {
        const numbered: Strings = isNumbered(error)
          ? {}
          : { "x-call-id": deps.ids.call(), "x-cost-idr": "0" }
        return Effect.fail(
          withErrorHeaders(error, { ...numbered, ...rate, "server-timing": meter.serverTiming() }),
        )
      }),
    ),
  )
}
