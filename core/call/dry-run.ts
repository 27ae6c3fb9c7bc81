import { Effect } from "effect"
import type { Caller, Limits } from "../caller.ts"
import { rupiahNumber } from "../money.ts"
import type { RateState } from "../ports/billing.ts"
import type { Endpoint, Forecast, Reply } from "../ports/endpoint.ts"
import { sumUsage } from "../usage.ts"
import { admission, holdOf, peek } from "./admission.ts"
import type { Answer, CallInput, CallPathDeps } from "./contract.ts"
import { callHeaders } from "./key-headers.ts"
import type { Prepared } from "./prepare.ts"

/**
 * `X-Dry-Run: 1`: what the call would cost at worst, and whether cap and balance cover that now.
 */
const dryRunReply = (
  endpoint: Endpoint,
  { bound, costMicros, wouldSucceed, more }: Forecast,
  limits: Limits,
  rate: RateState,
): Reply => {
  const usage = sumUsage(Object.values(bound))
  return {
    status: 200,
    json: {
      object: "dry_run",
      endpoint: endpoint.path,
      model: Object.keys(bound)[0] ?? null,
      input_tokens: usage.inputTokens,
      max_output_tokens: usage.outputTokens,
      cost_idr: rupiahNumber(costMicros),
      limits: {
        rpm: limits.rpm,
        rpm_remaining: rate.remaining,
        rpd: limits.rpd,
        concurrency: limits.concurrency,
        monthly_cap_idr: rupiahNumber(limits.monthlyCapMicros),
        body_mb: limits.bodyMb,
      },
      would_succeed: wouldSucceed,
      ...more,
    },
  }
}

/** Stops after the plan: counts as a request, holds and runs nothing. */
export const dryRun = Effect.fnUntraced(function* (
  deps: CallPathDeps,
  endpoint: Endpoint,
  input: CallInput,
  caller: Caller,
  prepared: Prepared,
) {
  const { plan, holdMicros, meter } = prepared
  const rate = yield* admission(deps, endpoint, input, caller, {
    ...holdOf(prepared, "rpm"),
    holdMicros: 0n,
  })
  const forecast = plan.forecast
    ? yield* plan.forecast
    : { bound: plan.bound, costMicros: holdMicros, wouldSucceed: true, more: {} }
  const isCovered = yield* peek(deps, endpoint, input, caller, forecast.costMicros).pipe(
    Effect.as(true),
    Effect.catchTag("ApiError", () => Effect.succeed(false)),
  )
  const reply = dryRunReply(
    endpoint,
    { ...forecast, wouldSucceed: forecast.wouldSucceed && isCovered },
    caller.limits,
    rate,
  )
  return {
    reply: { ...reply, headers: callHeaders(prepared, rate, 0n) },
    cost: () => 0n,
    timing: meter.serverTiming,
  } satisfies Answer
})
