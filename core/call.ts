import { Effect } from "effect"
import { peek } from "./call/admission.ts"
import type { Answer, CallInput, CallPath, CallPathDeps } from "./call/contract.ts"
import { dryRun } from "./call/dry-run.ts"
import { fingerprintOf, idempotently } from "./call/idempotent.ts"
import { callHeaders, withKeyHeaders } from "./call/key-headers.ts"
import { maskInternalErrors, runPlan } from "./call/mask-internal-errors.ts"
import { type Meter, makeMeter } from "./call/meter.ts"
import { paid } from "./call/paid.ts"
import { type Prepared, prepare } from "./call/prepare.ts"
import { runUnsettled } from "./call/unsettled.ts"
import type { Caller } from "./caller.ts"
import type { Endpoint, Reply } from "./ports/endpoint.ts"

const unpaid = ({ log }: CallPathDeps, { plan, meter }: Prepared) =>
  Effect.map(
    runPlan(log, plan),
    (reply): Answer => ({ reply, cost: () => undefined, timing: meter.serverTiming }),
  )

/** The reply of an earlier request with the same key. It costs nothing. */
const replayOf =
  (deps: CallPathDeps, endpoint: Endpoint, input: CallInput, caller: Caller, prepared: Prepared) =>
  (reply: Reply) =>
    Effect.map(
      endpoint.access === "key" ? peek(deps, endpoint, input, caller) : Effect.succeed(undefined),
      (rate): Answer => ({
        reply: {
          ...reply,
          headers: { ...(rate && callHeaders(prepared, rate, 0n)), ...reply.headers },
        },
        cost: () => 0n,
        timing: prepared.meter.serverTiming,
      }),
    )

const runOnce = (
  deps: CallPathDeps,
  endpoint: Endpoint,
  input: CallInput,
  caller: Caller,
  prepared: Prepared,
) => {
  const work = (settled?: (answer: Answer) => void) =>
    endpoint.access === "key"
      ? paid(deps, endpoint, input, caller, prepared, settled)
      : unpaid(deps, prepared)
  const store = endpoint.creates ? deps.idempotency() : undefined
  if (!store || input.idempotencyKey === undefined) return work()
  const only = {
    store,
    log: deps.log,
    caller,
    key: input.idempotencyKey,
    fingerprint: fingerprintOf(endpoint, input),
  }
  return idempotently(only, replayOf(deps, endpoint, input, caller, prepared), work)
}

const answer = (deps: CallPathDeps, endpoint: Endpoint, input: CallInput, meter: Meter) =>
  Effect.flatMapEager(prepare(deps, endpoint, input, meter), (prepared) => {
    const { caller } = input
    if (!caller || endpoint.access === "public") return unpaid(deps, prepared)
    return input.dryRun && endpoint.access === "key"
      ? dryRun(deps, endpoint, input, caller, prepared)
      : runOnce(deps, endpoint, input, caller, prepared)
  })

export const makeCallPath = (deps: CallPathDeps): CallPath => {
  const masked = maskInternalErrors(deps.log)
  return {
    run: (endpoint, input) =>
      Effect.suspend(() => {
        const meter = input.meter ?? makeMeter(deps.clock)
        const answered = masked(answer(deps, endpoint, input, meter))
        return withKeyHeaders(deps, endpoint, input, meter, answered)
      }),
    runUnsettled: (endpoint, input) => masked(runUnsettled(deps, endpoint, input)),
    check: (endpoint, input) =>
      masked(
        Effect.map(
          Effect.suspend(() => prepare(deps, endpoint, input, makeMeter(deps.clock))),
          ({ plan, holdMicros }) => ({ bound: plan.bound, costMicros: holdMicros }),
        ),
      ),
  }
}
