import { Effect } from "effect"
import type { CallInput, CallPathParts } from "../call.ts"
import type { Caller } from "../caller.ts"
import { decodeBody } from "../decode.ts"
import type { Call, Endpoint, Plan } from "../endpoint.ts"
import { type ApiError, apiError } from "../errors.ts"
import type { Json } from "../json.ts"
import { costOf } from "../pricing.ts"
import { type Meter, makeMeter } from "./meter.ts"

/** A call that was authorized, decoded and planned; nothing is held yet. */
export interface Prepared {
  readonly call: Call<Json>
  readonly plan: Plan
  readonly meter: Meter
  readonly startedMs: number
}

const authorize = (endpoint: Endpoint, caller: Caller | undefined): Effect.Effect<void, ApiError> => {
  if (endpoint.access === "public") return Effect.void
  if (!caller) return Effect.fail(apiError("authentication_error"))
  if (endpoint.access === "admin" && caller.role !== "admin") return Effect.fail(apiError("permission_denied"))
  if (endpoint.access === "key" && !caller.scopes.some((scope) => scope === "*" || scope === endpoint.id))
    return Effect.fail(apiError("permission_denied", `This key's scopes don't include '${endpoint.id}'.`))
  return Effect.void
}

const makeCall = (parts: CallPathParts, input: CallInput, body: Json, meter: Meter, nowMs: number): Call<Json> => {
  const id = parts.ids.call()
  const tenant = input.caller?.tenant ?? { account: "", mode: "live" as const }
  return {
    id,
    caller: input.caller,
    body,
    params: input.params ?? {},
    query: input.query ?? {},
    context: { callId: id, tenant, priority: input.priority, deadlineMs: nowMs + parts.timeoutMs, meter: meter.meter, time: meter.time },
    // test keys live in a sandbox where nothing is billed
    price: (usage) => (tenant.mode === "test" ? 0n : costOf(parts.catalogue.price, usage, input.priceFactor)),
    used: meter.used,
  }
}

export const prepare = (parts: CallPathParts, endpoint: Endpoint, input: CallInput): Effect.Effect<Prepared, ApiError> =>
  Effect.gen(function* () {
    const startedMs = parts.clock.nowMs()
    yield* authorize(endpoint, input.caller)
    const body = typeof endpoint.body === "string" ? input.body : yield* decodeBody(endpoint.body, input.body)
    const meter = makeMeter()
    const call = makeCall(parts, input, body, meter, startedMs)
    const plan = yield* endpoint.plan(call)
    meter.time("plan", parts.clock.nowMs() - startedMs)
    return { call, plan, meter, startedMs }
  })
