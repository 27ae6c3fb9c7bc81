import { Effect } from "effect"
import type { Caller } from "../caller.ts"
import { decodeBody, decodeQuery } from "../decode.ts"
import { type ApiError, apiError } from "../errors.ts"
import type { Json } from "../json.ts"
import { lesser, type Micros } from "../money.ts"
import type { Call, Endpoint, NoQuery, Plan } from "../ports/endpoint.ts"
import { costOf, type PriceTag, priceTag, worstCostOf } from "../pricing.ts"
import type { CallInput, CallPathDeps } from "./contract.ts"
import type { Meter } from "./meter.ts"

/** A call that was authorized, decoded and planned; nothing is held yet. */
export interface Prepared {
  readonly call: Call<Json>
  readonly plan: Plan
  readonly meter: Meter
  /** The worst case. */
  readonly holdMicros: Micros
  readonly prices: PriceTag
  readonly deadlineMs: number
}

const authorize = (
  endpoint: Endpoint,
  caller: Caller | undefined,
): Effect.Effect<void, ApiError> => {
  if (endpoint.access === "public") return Effect.void
  if (!caller) return Effect.fail(apiError("authentication_error"))
  if (caller.readOnly && endpoint.method !== "GET") return Effect.fail(apiError(caller.readOnly))
  if (endpoint.access === "admin" && caller.role !== "admin")
    return Effect.fail(apiError("permission_denied"))
  if (
    endpoint.access === "key" &&
    !caller.scopes.some((scope) => scope === "*" || scope === endpoint.id)
  )
    return Effect.fail(
      apiError("permission_denied", `This key's scopes don't include '${endpoint.id}'.`),
    )
  return Effect.void
}

/** Test keys live in a sandbox where nothing is billed. */
const factorOf = ({ caller, priceFactor }: CallInput): number =>
  caller?.tenant.mode === "test" ? 0 : priceFactor

const makeCall = (
  deps: CallPathDeps,
  input: CallInput,
  body: Json,
  query: NoQuery,
  meter: Meter,
  deadlineMs: number,
  most: () => Micros | undefined,
): Call<Json> => {
  const id = deps.ids.call()
  const factor = factorOf(input)
  const price: Call<Json>["price"] = (usage) => costOf(deps.catalogue.price, usage, factor)
  return {
    id,
    caller: input.caller,
    client: input.client,
    requestId: input.requestId,
    body,
    params: input.params ?? {},
    query,
    context: {
      callId: id,
      tenant: input.caller?.tenant ?? { account: "", mode: "live" },
      priority: input.priority,
      deadlineMs,
      meter: meter.meter,
      time: meter.time,
      note: meter.note,
    },
    price,
    used: meter.used,
    evidence: () => {
      const facts = meter.noted()
      return facts && { version: deps.version ?? null, ...facts }
    },
    cost: () => lesser(price(meter.used()), most() ?? 0n),
  }
}

const reaches = (
  caller: Caller | undefined,
  models: readonly string[],
): Effect.Effect<void, ApiError> => {
  const beyond = models.find((model) => caller?.models && !caller.models.includes(model))
  return beyond === undefined
    ? Effect.void
    : Effect.fail(
        apiError("model_not_found", `This key does not reach the model '${beyond}'.`, {
          param: "model",
        }),
      )
}

export const prepare = Effect.fnUntracedEager(function* (
  deps: CallPathDeps,
  endpoint: Endpoint,
  input: CallInput,
  meter: Meter,
): Effect.fn.Return<Prepared, ApiError> {
  const startedMs = deps.clock.monotonicMs()
  yield* authorize(endpoint, input.caller)
  const refusal = endpoint.refuses?.(input.body)
  if (refusal) return yield* refusal
  const body =
    typeof endpoint.body === "string" ? input.body : yield* decodeBody(endpoint.body, input.body)
  const query = endpoint.query ? yield* decodeQuery(endpoint.query, input.query ?? {}) : {}
  const deadlineMs = deps.clock.nowMs() + deps.timeoutMs
  let holdMicros: Micros | undefined
  const call = makeCall(deps, input, body, query, meter, deadlineMs, () => holdMicros)
  const plan = yield* endpoint.plan(call)
  const models = Object.keys(plan.bound)
  yield* reaches(input.caller, models)
  holdMicros = worstCostOf(deps.catalogue.price, plan.bound, factorOf(input))
  meter.time("plan", deps.clock.monotonicMs() - startedMs)
  return {
    call,
    plan,
    meter,
    deadlineMs,
    holdMicros,
    prices: priceTag(deps.catalogue.price, models, factorOf(input)),
  }
})
