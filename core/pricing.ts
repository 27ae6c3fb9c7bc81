import { formatRupiah, type Micros, parseRupiah } from "./money.ts"
import type { Usage, UsageByModel } from "./usage.ts"

/**
 * List prices of one model in pico-rupiah (micro-rupiah x 1,000,000), so that a price per million tokens is a whole number per token.
 * @see parsePrice for the units of the config file
 */
export interface Price {
  readonly input: bigint
  readonly output: bigint
  readonly image: bigint
  readonly searchUnit: bigint
}

export const freePrice: Price = { input: 0n, output: 0n, image: 0n, searchUnit: 0n }

/** Config: `input` and `output` in Rp per 1M tokens, `image` in Rp per image, `searchUnit` in Rp per search unit. */
export const parsePrice = (price: { readonly [K in keyof Price]?: number | undefined }): Price => ({
  input: parseRupiah(String(price.input ?? 0)),
  output: parseRupiah(String(price.output ?? 0)),
  image: parseRupiah(String(price.image ?? 0)) * 1_000_000n,
  searchUnit: parseRupiah(String(price.searchUnit ?? 0)) * 1_000_000n,
})

/** Prices and factor in force at a call's admission, in Rp as plain decimals: per 1M tokens, per image, per search unit. */
export interface PriceTag {
  readonly factor: number
  readonly models: Readonly<Record<string, Readonly<Record<keyof Price, string>>>>
}

const labels = new WeakMap<Price, PriceTag["models"][string]>()

const labelOf = (price: Price) => {
  const known = labels.get(price)
  if (known) return known
  const { input, output, image, searchUnit } = price
  const label = { input: formatRupiah(input), output: formatRupiah(output), image: formatRupiah(image / 1_000_000n), searchUnit: formatRupiah(searchUnit / 1_000_000n) }
  labels.set(price, label)
  return label
}

export const priceTag = (prices: (model: string) => Price, models: readonly string[], factor: number): PriceTag => ({
  factor,
  models: Object.fromEntries(models.map((model) => [model, labelOf(prices(model))])),
})

const picoCost = (price: Price, usage: Usage): bigint => {
  const count = (n: number) => BigInt(Math.max(0, Math.ceil(n)))
  const uncached = count(usage.inputTokens) - count(usage.cacheReadTokens) - count(usage.cacheWriteTokens)
  // x 100, so that 0.1 of a cache read and 1.25 of a cache write stay whole numbers
  const hundredfold =
    uncached * price.input * 100n +
    count(usage.cacheReadTokens) * price.input * 10n +
    count(usage.cacheWriteTokens) * price.input * 125n +
    count(usage.outputTokens) * price.output * 100n +
    count(usage.images) * price.image * 100n +
    count(usage.searchUnits) * price.searchUnit * 100n
  return hundredfold
}

/** What `usage` costs, rounded once, up, to a micro-rupiah. `factor` is 1, or 0.5 in a batch; at most 3 decimals. */
export const costOf = (prices: (model: string) => Price, usage: UsageByModel, factor = 1): Micros => {
  const thousandths = BigInt(Math.round(factor * 1000))
  let sum = 0n
  for (const [model, used] of Object.entries(usage)) sum += picoCost(prices(model), used) * thousandths
  const microsDivisor = 1_000_000n * 100n * 1000n
  return (sum + microsDivisor - 1n) / microsDivisor
}
