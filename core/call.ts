import { Cause, Effect, Exit, Option, type Scope } from "effect"
import { admission, holdOf, look, withKeyHeaders } from "./call/admission.ts"
import { dryRunReply } from "./call/dry-run.ts"
import { fingerprintOf, idempotently } from "./call/idempotent.ts"
import { type Meter, makeMeter } from "./call/meter.ts"
import { paid, settlementOf } from "./call/paid.ts"
import { type Prepared, prepare } from "./call/prepare.ts"
import { rateHeaders } from "./call/refusal.ts"
import { seal } from "./call/seal.ts"
import type { Caller, Client } from "./caller.ts"
import { type ApiError, apiError, statusOf } from "./errors.ts"
import type { Json, Strings } from "./json.ts"
import type { Micros } from "./money.ts"
import type { Billing, Settlement } from "./ports/billing.ts"
import type { Endpoint, Reply } from "./ports/endpoint.ts"
import type { Idempotency } from "./ports/idempotency.ts"
import type { Catalogue } from "./services/catalogue.ts"
import type { Clock } from "./services/clock.ts"
import type { Ids } from "./services/ids.ts"
import type { Log } from "./services/log.ts"
import type { UsageByModel } from "./usage.ts"

/** What the call path works with. Ports are resolved lazily: the path is made before plugins start. */
export interface CallPathDeps {
  readonly billing: () => Billing
  readonly idempotency: () => Idempotency | undefined
  readonly catalogue: Catalogue
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly timeoutMs: number
}

export interface CallInput {
  /** Absent on public endpoints only. */
  readonly caller: Caller | undefined
  readonly body: Json
  readonly params?: Strings
  readonly query?: Strings
  readonly requestId: string
  readonly client?: Client | undefined
  /** Duration of the authentication. */
  readonly authMs?: number
  readonly priority: "realtime" | "batch"
  /** 1, or 0.5 in a batch. */
  readonly priceFactor: number
  readonly parent?: string
  readonly dryRun?: boolean
  readonly idempotencyKey?: string | undefined
}

export interface Answer {
  readonly reply: Reply
  /** The price of the call; known once it is settled (for a stream, after its last event). */
  cost(): Micros | undefined
  /** `Server-Timing` so far; complete after the last event of a stream. */
  timing(): string
}

/** The one call path, used by HTTP and by the batch worker. */
export interface CallPath {
  /** Settles before the reply is out, for a stream before its end; when the Scope closes early, by what the meter says. */
  run(endpoint: Endpoint, input: CallInput): Effect.Effect<Answer, ApiError, Scope.Scope>
  /** For a batch line: the caller commits the settlement with its own rows. Fails with nothing held. */
  runUnsettled(
    endpoint: Endpoint,
    input: CallInput,
  ): Effect.Effect<{ readonly reply: Reply; readonly settlement: Settlement }, ApiError>
  /** Authorizes, decodes and plans, and does nothing: what the call would use and cost at worst. */
  check(
    endpoint: Endpoint,
    input: CallInput,
  ): Effect.Effect<{ readonly bound: UsageByModel; readonly costMicros: Micros }, ApiError>
}

const dryRun = (
  parts: CallPathDeps,
  endpoint: Endpoint,
  input: CallInput,
  caller: Caller,
  prepared: Prepared,
) =>
  Effect.gen(function* () {
    const { call, plan, holdMicros, meter } = prepared
    const rate = yield* admission(parts, endpoint, input, caller, {
      ...holdOf(prepared),
      holdMicros: 0n,
      counts: "rpm",
    })
    const forecast = plan.forecast
      ? yield* plan.forecast
      : { bound: plan.bound, costMicros: holdMicros, wouldSucceed: true, more: {} }
    const isCovered = yield* look(parts, endpoint, input, caller, forecast.costMicros).pipe(
      Effect.as(true),
      Effect.catchTag("ApiError", () => Effect.succeed(false)),
    )
    const reply = dryRunReply(
      endpoint,
      { ...forecast, wouldSucceed: forecast.wouldSucceed && isCovered },
      caller.limits,
      rate,
    )
    const headers = {
      "x-call-id": call.id,
      "x-cost-idr": "0",
      ...rateHeaders(rate),
      "server-timing": meter.serverTiming(),
    }
    return {
      reply: { ...reply, headers },
      cost: () => 0n,
      timing: meter.serverTiming,
    } satisfies Answer
  })

const notStreamed = (reply: Reply) =>
  "json" in reply
    ? Effect.succeed(reply)
    : Effect.fail(
        apiError("unsupported_parameter", "A batch line can't be streamed.", { param: "stream" }),
      )

export const makeCallPath = (parts: CallPathDeps): CallPath => {
  const sealed = seal(parts.log)

  const unpaid = ({ plan, meter }: Prepared) =>
    Effect.map(
      plan.run,
      (reply): Answer => ({ reply, cost: () => undefined, timing: meter.serverTiming }),
    )

  const once = (endpoint: Endpoint, input: CallInput, caller: Caller, prepared: Prepared) => {
    const isKeyed = endpoint.access === "key"
    const work = isKeyed ? paid(parts, endpoint, input, caller, prepared) : unpaid(prepared)
    if (!endpoint.creates || input.idempotencyKey === undefined) return work
    const store = parts.idempotency()
    if (!store) return work
    const replay = (reply: Reply) =>
      Effect.map(
        isKeyed ? look(parts, endpoint, input, caller) : Effect.succeed(undefined),
        (rate): Answer => {
          const keyed = rate && {
            "x-call-id": prepared.call.id,
            "x-cost-idr": "0",
            ...rateHeaders(rate),
            "server-timing": prepared.meter.serverTiming(),
          }
          return {
            reply: { ...reply, headers: { ...keyed, ...reply.headers } },
            cost: () => 0n,
            timing: prepared.meter.serverTiming,
          }
        },
      )
    const only = {
      store,
      log: parts.log,
      caller,
      key: input.idempotencyKey,
      fingerprint: fingerprintOf(endpoint, input.params ?? {}, input.body),
    }
    return idempotently(only, replay, work)
  }

  const answer = (endpoint: Endpoint, input: CallInput, meter: Meter) =>
    Effect.gen(function* () {
      const { caller } = input
      const prepared = yield* prepare(parts, endpoint, input, meter)
      if (!caller || endpoint.access === "public") return yield* unpaid(prepared)
      if (input.dryRun && endpoint.access === "key")
        return yield* dryRun(parts, endpoint, input, caller, prepared)
      return yield* once(endpoint, input, caller, prepared)
    })

  const run: CallPath["run"] = (endpoint, input) =>
    Effect.suspend(() => {
      const meter = makeMeter(parts.clock, input.authMs)
      return withKeyHeaders(parts, endpoint, input, meter, sealed(answer(endpoint, input, meter)))
    })

  const runUnsettled: CallPath["runUnsettled"] = (endpoint, input) =>
    sealed(
      Effect.gen(function* () {
        const { caller } = input
        if (!caller) return yield* apiError("authentication_error")
        const prepared = yield* prepare(parts, endpoint, input, makeMeter(parts.clock))
        const { call, plan } = prepared
        const giveBack = (cause: Cause.Cause<ApiError>) => {
          const failure = Option.getOrElse(Cause.findErrorOption(cause), () =>
            apiError("internal_error"),
          )
          return Effect.ignore(
            parts.billing().settle([settlementOf(call, failure, statusOf(failure))]),
          )
        }
        return yield* Effect.acquireUseRelease(
          admission(parts, endpoint, input, caller, { ...holdOf(prepared), counts: "money" }),
          () =>
            sealed(Effect.scoped(plan.run)).pipe(
              Effect.flatMap(notStreamed),
              Effect.map((reply) => ({
                reply,
                settlement: settlementOf(call, undefined, reply.status),
              })),
            ),
          (_, exit) => (Exit.isSuccess(exit) ? Effect.void : giveBack(exit.cause)),
        )
      }),
    )

  const check: CallPath["check"] = (endpoint, input) =>
    sealed(
      Effect.map(
        prepare(parts, endpoint, input, makeMeter(parts.clock)),
        ({ plan, holdMicros }) => ({ bound: plan.bound, costMicros: holdMicros }),
      ),
    )

  return { run, runUnsettled, check }
}
