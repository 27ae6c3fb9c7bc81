import type { Limits } from "../caller.ts"
import { rupiahNumber } from "../money.ts"
import type { RateState } from "../ports/billing.ts"
import type { Endpoint, Forecast, Reply } from "../ports/endpoint.ts"
import { sumUsage } from "../usage.ts"

/** `X-Dry-Run: 1`: what the call would cost at worst, and whether cap and balance cover that now. */
export const dryRunReply = (
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
      },
      would_succeed: wouldSucceed,
      ...more,
    },
  }
}
