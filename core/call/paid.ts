import { Cause, Effect, Exit, Option, Scope, Stream } from "effect"
import type { Caller } from "../caller.ts"
import { concat } from "../concat.ts"
import {
  type ApiError,
  apiError,
  type ErrorCode,
  isApiError,
  type PortError,
  statusOf,
} from "../errors.ts"
import type { Strings } from "../json.ts"
import type { Micros } from "../money.ts"
import type { Settlement } from "../ports/billing.ts"
import type { Endpoint, Reply } from "../ports/endpoint.ts"
import { admission, holdOf, withErrorHeaders } from "./admission.ts"
import type { Answer, CallInput, CallPathDeps } from "./contract.ts"
import { callHeaders } from "./key-headers.ts"
import { maskInternalErrors, runPlan } from "./mask-internal-errors.ts"
import type { Prepared } from "./prepare.ts"
import { rateHeaders } from "./rate-headers.ts"

/**
 * Client closed the request: what logs and rows show for a caller that left (nginx's convention).
 */
const clientGone = 499

/** Refusals by a full queue: what admission counted is given back. */
const busy: ReadonlySet<ErrorCode> = new Set(["backend_busy", "server_busy"])

/** A failure on our side costs nothing; otherwise the meter says what was produced. */
export const settlementOf = (
  { call, meter }: Pick<Prepared, "call" | "meter">,
  failure: ApiError | undefined,
  status: number,
): Settlement => {
  const evidence = failure ? undefined : call.evidence?.()
  return {
    id: call.id,
    outcome: failure ? (busy.has(failure.code) ? "refused" : "voided") : "settled",
    costMicros: failure ? 0n : call.cost(),
    usage: call.used(),
    httpStatus: failure ? statusOf(failure) : status,
    timing: meter.serverTiming(),
    failure: failure && { code: failure.code, message: failure.message },
    evidence,
  }
}

/**
 * States of a paid call: admitted (open) -> failed (noted) -> voided | refused; open -> settled.
 * `settle` moves it once, whoever comes first.
 */
const makeSettling = (deps: CallPathDeps, prepared: Prepared) => {
  let open = false
  let failure: ApiError | undefined
  let cost: Micros | undefined
  return {
    isOpen: () => open,
    admitted: () => {
      open = true
    },
    cost: () => cost,
    /** Remembers a failure, so that it is not charged. An interruption is none: the caller left. */
    note: <A, E>(exit: Exit.Exit<A, E>): undefined => {
      if (Exit.isSuccess(exit)) return
      const error = Option.getOrUndefined(Exit.findErrorOption(exit))
      if (isApiError(error)) failure = error
      else if (!Cause.hasInterruptsOnly(exit.cause)) failure = apiError("internal_error")
    },
    settle: (status: number): Effect.Effect<void, PortError> =>
      Effect.suspend(() => {
        if (!open) return Effect.void
        open = false
        const settlement = settlementOf(prepared, failure, status)
        cost = settlement.costMicros
        const beforeMs = deps.clock.monotonicMs()
        return Effect.map(deps.billing().settle([settlement]), () =>
          prepared.meter.time("settle", deps.clock.monotonicMs() - beforeMs),
        )
      }).pipe(
        // a backend that metered what has no price must not keep the hold
        Effect.catchDefect((defect) =>
          Effect.andThen(
            deps.billing().settle([settlementOf(prepared, apiError("internal_error"), 500)]),
            Effect.die(defect),
          ),
        ),
        Effect.uninterruptible,
      ),
  }
}

// assigned: to what begins with a spread V8 adds each further member anew, on a slow way
const withHeaders = (reply: Reply, headers: Strings): Reply =>
  Object.assign({}, reply, { headers: Object.assign({}, headers, reply.headers) })

/** Admits, and notes how long the limits and the hold took. */
const timedAdmission = (
  deps: CallPathDeps,
  endpoint: Endpoint,
  input: CallInput,
  caller: Caller,
  prepared: Prepared,
  admitted: () => void,
) => {
  const beforeMs = deps.clock.monotonicMs()
  return Effect.map(admission(deps, endpoint, input, caller, holdOf(prepared, "all")), (rate) => {
    admitted()
    const { holdMs = 0 } = rate
    prepared.meter.time("limits", Math.max(0, deps.clock.monotonicMs() - beforeMs - holdMs))
    prepared.meter.time("hold", holdMs)
    return rate
  })
}

/**
 * Admits, runs and settles. The Scope's end settles a call that was cut. `settled` is called with a
 * whole answer once it is paid for, also when the caller has left by then.
 */
export const paid = Effect.fnUntraced(function* (
  deps: CallPathDeps,
  endpoint: Endpoint,
  input: CallInput,
  caller: Caller,
  prepared: Prepared,
  settled?: (answer: Answer) => void,
): Effect.fn.Return<Answer, ApiError | PortError, Scope.Scope> {
  const { call, plan } = prepared
  const { serverTiming: timing } = prepared.meter
  const { settle, note, cost, isOpen, admitted } = makeSettling(deps, prepared)
  const settleCut = () =>
    Effect.catchCause(settle(clientGone), (cause) =>
      Effect.sync(() =>
        deps.log.error("ledger.settlement_failed", "settlement failed", {
          call_id: call.id,
          cause: Cause.pretty(cause),
        }),
      ),
    )
  // in place of `acquireRelease`, which takes more steps of the fiber
  yield* Scope.addFinalizerExit(yield* Effect.scope, () => (isOpen() ? settleCut() : Effect.void))
  const rate = yield* Effect.uninterruptible(
    timedAdmission(deps, endpoint, input, caller, prepared, admitted),
  )
  if (deps.cohort) yield* deps.cohort
  const named = () => ({ "x-call-id": call.id, ...rateHeaders(rate) })
  const reply = yield* runPlan(deps.log, plan).pipe(
    (run) => Effect.onExitPrimitive(run, note),
    Effect.mapError((error) => withErrorHeaders(error, { ...named(), "x-cost-idr": "0" })),
  )
  if ("events" in reply) {
    const settling = Stream.fromEffectDrain(maskInternalErrors(deps.log)(settle(reply.status)))
    const noted = Stream.onExit(reply.events, (exit) => Effect.sync(() => note(exit)))
    const events = concat(noted, settling)
    const streamed = withHeaders({ ...reply, events }, callHeaders(prepared, rate, undefined))
    return { reply: streamed, cost, timing }
  }
  if (deps.cohort) yield* deps.cohort
  const end = Effect.map(settle(reply.status), () => {
    const headers = callHeaders(prepared, rate, cost())
    const answer: Answer = { reply: withHeaders(reply, headers), cost, timing }
    settled?.(answer)
    return answer
  })
  // whether the money moved is not known then, so no cost is named
  return yield* maskInternalErrors(deps.log)(Effect.uninterruptible(end)).pipe(
    Effect.mapError((error) => withErrorHeaders(error, named())),
  )
})
