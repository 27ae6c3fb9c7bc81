import { Effect } from "effect"
import type { Caller } from "../caller.ts"
import { type ApiError, statusOf } from "../errors.ts"
import type { Strings } from "../json.ts"
import { formatRupiah, type Micros } from "../money.ts"
import type { RateState } from "../ports/billing.ts"
import type { Endpoint } from "../ports/endpoint.ts"
import { peek, withErrorHeaders } from "./admission.ts"
import type { CallInput, CallPathDeps } from "./contract.ts"
import { maskInternalErrors } from "./mask-internal-errors.ts"
import type { Meter } from "./meter.ts"
import type { Prepared } from "./prepare.ts"
import { rateHeaders } from "./rate-headers.ts"

/** The headers of a keyed reply. Without a cost: it is not settled yet. */
export const callHeaders = (
  { call, meter }: Prepared,
  rate: RateState,
  cost: Micros | undefined,
): Strings => {
  const headers = rateHeaders(rate)
  headers["x-call-id"] = call.id
  headers["server-timing"] = meter.serverTiming()
  if (cost !== undefined) headers["x-cost-idr"] = formatRupiah(cost)
  return headers
}

const has = ({ headers = {} }: ApiError, name: string): boolean => name in headers
/** Who would say what the key has left can't be asked either. */
const isOutage = ({ code }: ApiError) => code === "database_unavailable" || code === "storage_full"

/** Limits and money are refusals of the operator's; all else of 4xx is the client's error. */
const isOfClient = (error: ApiError): boolean => /^4(?!02|29)/.test(String(statusOf(error)))

/** What was admitted, or refused by limits, is numbered. */
const noteRefused = (
  { billing, catalogue }: CallPathDeps,
  endpoint: Endpoint,
  { dryRun, body, requestId }: CallInput,
  caller: Caller,
  error: ApiError,
): void => {
  if (dryRun || has(error, "x-call-id") || !isOfClient(error)) return
  const named = (body as { readonly model?: unknown } | undefined)?.model
  const model = typeof named === "string" ? catalogue.entry(named)?.id : undefined
  billing().noteRefused?.({ caller, endpoint: endpoint.id, model, requestId, error })
}

/** Fails with the error and what a keyed request shows of it. */
const failKeyed = Effect.fnUntraced(function* (
  deps: CallPathDeps,
  endpoint: Endpoint,
  input: CallInput,
  caller: Caller,
  meter: Meter,
  error: ApiError,
) {
  noteRefused(deps, endpoint, input, caller, error)
  // the refusal is what the client has to know, also where nobody can say what its key has left
  const peeked = Effect.match(
    maskInternalErrors(deps.log)(Effect.suspend(() => peek(deps, endpoint, input, caller))),
    { onSuccess: rateHeaders, onFailure: (): Strings => ({}) },
  )
  const rate: Strings =
    has(error, "x-ratelimit-limit-requests") || isOutage(error) ? {} : yield* peeked
  const number: Strings = { "x-call-id": deps.ids.call(), "x-cost-idr": "0" }
  return yield* withErrorHeaders(error, {
    ...(!has(error, "x-call-id") && number),
    ...rate,
    "server-timing": meter.serverTiming(),
  })
})

/**
 * What a keyed request shows however it fails: a call id, the rate headers, how long it took, and
 * that a refused one costs nothing. One that is refused before its admission counts toward no limit.
 */
export const withKeyHeaders = <A, R>(
  deps: CallPathDeps,
  endpoint: Endpoint,
  input: CallInput,
  meter: Meter,
  effect: Effect.Effect<A, ApiError, R>,
): Effect.Effect<A, ApiError, R> => {
  const { caller } = input
  if (!caller || endpoint.access !== "key") return effect
  return Effect.catchTag(effect, "ApiError", (error) =>
    failKeyed(deps, endpoint, input, caller, meter, error),
  )
}
