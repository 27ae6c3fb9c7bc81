import type { ModelId } from "./services/ids.ts"

/**
 * What a call used, or may use at worst. `inputTokens` includes the cached ones and those of images,
 * `outputTokens` includes reasoning.
 */
export interface Usage {
  readonly inputTokens: number
  readonly imageTokens: number
  readonly cacheReadTokens: number
  readonly cacheWriteTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
  readonly images: number
  readonly audioSeconds: number
  readonly searchUnits: number
}

/** One call may use several models: retrieval with rerank uses two. */
export type UsageByModel = Readonly<Record<ModelId, Usage>>

export const noUsage: Usage = {
  inputTokens: 0,
  imageTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  images: 0,
  audioSeconds: 0,
  searchUnits: 0,
}

export const usageOf = (part: Partial<Usage>): Usage => ({ ...noUsage, ...part })

export const sumUsage = (usages: readonly Usage[]): Usage => {
  if (usages.length === 1) return usages[0]!
  const sum: Record<keyof Usage, number> = { ...noUsage }
  for (const usage of usages)
    for (const key of Object.keys(sum) as (keyof Usage)[]) sum[key] += usage[key]
  return sum
}
