import { rupiahNumber } from "../../core/money.ts"
import type { Call } from "../../core/ports/endpoint.ts"
import { noUsage } from "../../core/usage.ts"
import type { ChatUsage } from "./reply-schema.ts"

/** What the meter of the call has read so far, and what that costs. */
export const usageNow = (call: Pick<Call<unknown>, "used" | "cost">, model: string): ChatUsage => {
  const used = call.used()
  const usage = used[model] ?? noUsage
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    cache_creation_input_tokens: usage.cacheWriteTokens,
    cache_read_input_tokens: usage.cacheReadTokens,
    prompt_tokens_details: { cached_tokens: usage.cacheReadTokens },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    cost_idr: rupiahNumber(call.cost()),
  }
}
