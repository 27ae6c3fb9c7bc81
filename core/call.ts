import { Cause, Effect, Exit, Option, type Scope, Stream } from "effect"
import { dryRunReply } from "./call/dry-run.ts"
import { fingerprintOf, idempotently } from "./call/idempotent.ts"
import { type Meter, makeMeter } from "./call/meter.ts"
import { rateHeaders, refusalError } from "./call/refusal.ts"
import { type Caller, defaultLimits } from "./caller.ts"
import type { Catalogue } from "./catalogue.ts"
import { decodeBody } from "./decode.ts"
import type { Call, Endpoint, Plan, Reply } from "./endpoint.ts"
import { ApiError, apiError, type PortError, statusOf } from "./errors.ts"
import type { Ids } from "./ids.ts"
import type { Json, Strings } from "./json.ts"
import { formatRupiah, type Micros } from "./money.ts"
import type { AdmitRequest, Billing, RateState, Settlement } from "./ports/billing.ts"
import { costOf } from "./pricing.ts"
import type { Clock } from "./services/clock.ts"
import type { Idempotency } from "./services/idempotency.ts"
import type { Log } from "./services/log.ts"
import type { UsageByModel } from "./usage.ts"

export interface CallInput {
  /** Absent on public endpoints only. */
  readonly caller: Caller | undefined
  readonly body: Json
  readonly params?: Strings
  readonly query?: Strings
  readonly requestId: string
  readonly priority: "realtime" | "batch"
  /** 1, or 0.5 in a batch. */
  readonly priceFactor: number
  readonly parent?: string
  readonly dryRun?: boolean
  readonly idempotencyKey?: string | undefined
}

export interface Answer {
  readonly reply: Reply
  /** What the call cost; known once it is settled, for a stream after its last event. */
  cost(): Micros | undefined
}

/** Written once; HTTP and the batch worker both go through it. */
export interface CallPath {
  /** Settles before the reply is out, for a stream before its end; when the Scope closes early, by what the meter says. */
  run(endpoint: Endpoint, input: CallInput): Effect.Effect<Answer, ApiError, Scope.Scope>
  /** For a batch line: the caller commits the settlement with its own rows. Fails with nothing held. */
  runUnsettled(endpoint: Endpoint, input: CallInput): Effect.Effect<{ readonly reply: Reply; readonly settlement: Settlement }, ApiError>
}

export interface CallPathParts {
  readonly billing: () => Billing
  readonly idempotency: () => Idempotency | undefined
  readonly catalogue: Catalogue
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly timeoutMs: number
}

interface Prepared {
  readonly call: Call<Json>
  readonly plan: Plan
  readonly meter: Meter
  readonly startedMs: number
}

/** Client closed the request: the status that logs and rows show for a caller that left (nginx's convention). */
const clientGone = 499

export const makeCallPath = (parts: CallPathParts): CallPath => {
  const internal = (error: PortError) =>
    Effect.sync(() => parts.log.error("a port failed", { port: error.port, reason: error.message, cause: String(error.cause ?? "") })).pipe(
      Effect.andThen(Effect.fail(apiError("internal_error"))),
    )
  const sealed = <A, R>(effect: Effect.Effect<A, ApiError | PortError, R>): Effect.Effect<A, ApiError, R> =>
    effect.pipe(
      Effect.catchTag("PortError", internal),
      Effect.catchDefect((defect) =>
        Effect.suspend(() => {
          parts.log.error("a plugin threw", { cause: defect instanceof Error ? defect.stack : String(defect) })
          return Effect.fail(apiError("internal_error"))
        }),
      ),
    )

  const authorize = (endpoint: Endpoint, caller: Caller | undefined): Effect.Effect<void, ApiError> => {
    if (endpoint.access === "public") return Effect.void
    if (!caller) return Effect.fail(apiError("authentication_error"))
    if (endpoint.access === "admin" && caller.role !== "admin") return Effect.fail(apiError("permission_denied"))
    if (endpoint.access === "key" && !caller.scopes.some((scope) => scope === "*" || scope === endpoint.id))
      return Effect.fail(apiError("permission_denied", `This key's scopes don't include '${endpoint.id}'.`))
    return Effect.void
  }

  const makeCall = (input: CallInput, body: Json, meter: Meter, nowMs: number): Call<Json> => {
    const id = parts.ids.call()
    const tenant = input.caller?.tenant ?? { account: "", mode: "live" as const }
    return {
      id,
      caller: input.caller,
      body,
      params: input.params ?? {},
      query: input.query ?? {},
      context: { callId: id, tenant, priority: input.priority, deadlineMs: nowMs + parts.timeoutMs, meter: meter.meter, time: meter.time },
      price: (usage) => (tenant.mode === "test" ? 0n : costOf(parts.catalogue.price, usage, input.priceFactor)),
      used: meter.used,
    }
  }

  const prepare = (endpoint: Endpoint, input: CallInput): Effect.Effect<Prepared, ApiError> =>
    Effect.gen(function* () {
      const startedMs = parts.clock.nowMs()
      yield* authorize(endpoint, input.caller)
      const body = typeof endpoint.body === "string" ? input.body : yield* decodeBody(endpoint.body, input.body)
      const meter = makeMeter()
      const call = makeCall(input, body, meter, startedMs)
      const plan = yield* endpoint.plan(call)
      meter.time("plan", parts.clock.nowMs() - startedMs)
      return { call, plan, meter, startedMs }
    })

  const admission = (endpoint: Endpoint, input: CallInput, caller: Caller, id: string, holdMicros: Micros, counts: AdmitRequest["counts"]) =>
    parts
      .billing()
      .admit({ id, caller, endpoint: endpoint.id, requestId: input.requestId, holdMicros, counts, ...(input.parent !== undefined && { parent: input.parent }) })
      .pipe(Effect.catchTag("Refusal", (refusal) => Effect.fail(refusalError(refusal))))

  /** A request that is refused before admission shows the rate headers too, and counts toward nothing. */
  const withRateHeaders = <A, R>(endpoint: Endpoint, input: CallInput, effect: Effect.Effect<A, ApiError, R>) => {
    const caller = input.caller
    if (!caller || endpoint.access !== "key") return effect
    return effect.pipe(
      Effect.catchTag("ApiError", (error) =>
        error.headers && "x-ratelimit-limit-requests" in error.headers
          ? Effect.fail(error)
          : sealed(admission(endpoint, input, caller, parts.ids.call(), 0n, "none")).pipe(
              Effect.flatMap((rate) => Effect.fail(new ApiError({ ...error, message: error.message, headers: { ...rateHeaders(rate), ...error.headers } }))),
            ),
      ),
    )
  }

  const dryRun = (endpoint: Endpoint, input: CallInput, caller: Caller, prepared: Prepared) =>
    Effect.gen(function* () {
      const { call, plan } = prepared
      const rate = yield* admission(endpoint, input, caller, call.id, 0n, "rpm")
      const { balanceMicros, heldMicros } = yield* parts.billing().balance(caller.tenant.account)
      const reply = dryRunReply(endpoint, plan.bound, call.price(plan.bound), balanceMicros - heldMicros, caller.limits ?? defaultLimits, rate)
      return { reply: { ...reply, headers: { "x-call-id": call.id, ...rateHeaders(rate) } }, cost: () => 0n } satisfies Answer
    })

  const settlementOf = (call: Call<Json>, failure: ApiError | undefined, status: number): Settlement => {
    const usage: UsageByModel = call.used()
    if (failure) return { id: call.id, outcome: failure.code === "backend_busy" ? "refused" : "voided", costMicros: 0n, usage, httpStatus: statusOf(failure) }
    return { id: call.id, outcome: "settled", costMicros: call.price(usage), usage, httpStatus: status }
  }

  const withHeaders = (reply: Reply, headers: Strings): Reply => ({ ...reply, headers: { ...headers, ...reply.headers } })

  const callHeaders = (prepared: Prepared, rate: RateState, costMicros: Micros | undefined): Strings => {
    prepared.meter.time("total", parts.clock.nowMs() - prepared.startedMs)
    return {
      "x-call-id": prepared.call.id,
      ...rateHeaders(rate),
      "server-timing": prepared.meter.serverTiming(),
      ...(costMicros !== undefined && { "x-cost-idr": formatRupiah(costMicros) }),
    }
  }

  /** States of a paid call: admitted -> running -> settled | voided | refused. `settle` moves it once; the Scope's finalizer does it for calls that were cut. */
  const paid = (endpoint: Endpoint, input: CallInput, caller: Caller, prepared: Prepared) =>
    Effect.gen(function* () {
      const { call, plan, meter } = prepared
      const billing = parts.billing()
      let open = true
      let failure: ApiError | undefined
      let cost: Micros | undefined
      const settle = (status: number) =>
        Effect.suspend(() => {
          if (!open) return Effect.void
          open = false
          const settlement = settlementOf(call, failure, status)
          cost = settlement.costMicros
          return billing.settle([settlement])
        }).pipe(Effect.uninterruptible)
      const note = <E>(cause: Cause.Cause<E | ApiError>) =>
        Effect.sync(() => {
          const error = Option.getOrUndefined(Cause.findErrorOption(cause))
          if (error instanceof Object && (error as ApiError)._tag === "ApiError") failure = error as ApiError
          else if (!Cause.hasInterruptsOnly(cause)) failure = apiError("internal_error")
        })
      const rate = yield* Effect.acquireRelease(admission(endpoint, input, caller, call.id, call.price(plan.bound), "all"), () =>
        settle(clientGone).pipe(Effect.catchCause((cause) => Effect.sync(() => parts.log.error("settlement failed", { call_id: call.id, cause: Cause.pretty(cause) })))),
      )
      meter.time("admit", parts.clock.nowMs() - prepared.startedMs)
      const reply = yield* plan.run.pipe(
        Effect.catchDefect((defect) => {
          parts.log.error("an endpoint threw", { call_id: call.id, cause: defect instanceof Error ? defect.stack : String(defect) })
          return Effect.fail(apiError("internal_error"))
        }),
        Effect.onError(note),
        Effect.mapError((error) => new ApiError({ ...error, message: error.message, headers: { "x-call-id": call.id, ...rateHeaders(rate), ...error.headers } })),
      )
      if (!("events" in reply)) {
        yield* settle(reply.status)
        return { reply: withHeaders(reply, callHeaders(prepared, rate, cost)), cost: () => cost } satisfies Answer
      }
      const events = reply.events.pipe(Stream.onError(note), Stream.concat(Stream.drain(Stream.fromEffect(sealed(settle(reply.status))))))
      return { reply: withHeaders({ ...reply, events }, callHeaders(prepared, rate, undefined)), cost: () => cost } satisfies Answer
    })

  const free = (prepared: Prepared) => prepared.plan.run.pipe(Effect.map((reply): Answer => ({ reply, cost: () => undefined })))

  const run: CallPath["run"] = (endpoint, input) =>
    sealed(
      Effect.gen(function* () {
        const { caller } = input
        const prepared = yield* withRateHeaders(endpoint, input, prepare(endpoint, input))
        if (!caller || endpoint.access !== "key") return yield* free(prepared)
        if (input.dryRun) return yield* dryRun(endpoint, input, caller, prepared)
        const work = paid(endpoint, input, caller, prepared)
        const store = parts.idempotency()
        if (!endpoint.creates || input.idempotencyKey === undefined || !store) return yield* work
        const replay = (reply: Reply): Answer => ({ reply, cost: () => 0n })
        return yield* withRateHeaders(
          endpoint,
          input,
          sealed(idempotently(store, caller, input.idempotencyKey, fingerprintOf(endpoint, input.params ?? {}, input.body), replay, work)),
        )
      }),
    )

  const runUnsettled: CallPath["runUnsettled"] = (endpoint, input) =>
    sealed(
      Effect.gen(function* () {
        const { caller } = input
        if (!caller) return yield* apiError("authentication_error")
        const prepared = yield* prepare(endpoint, input)
        const { call, plan } = prepared
        const undo = (failure: ApiError) => Effect.ignore(parts.billing().settle([settlementOf(call, failure, statusOf(failure))]))
        return yield* Effect.acquireUseRelease(
          admission(endpoint, input, caller, call.id, call.price(plan.bound), "money"),
          () =>
            Effect.scoped(plan.run).pipe(
              Effect.flatMap((reply) =>
                "json" in reply ? Effect.succeed(reply) : Effect.fail(apiError("unsupported_parameter", "A batch line can't be streamed.", { param: "stream" })),
              ),
              Effect.map((reply) => ({ reply, settlement: settlementOf(call, undefined, reply.status) })),
            ),
          (_, exit) => (Exit.isSuccess(exit) ? Effect.void : undo(Option.getOrElse(Cause.findErrorOption(exit.cause as Cause.Cause<ApiError>), () => apiError("internal_error")))),
        )
      }),
    )

  return { run, runUnsettled }
}
