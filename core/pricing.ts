import { formatDecimal, type Micros, parseRupiah } from "./money.ts"
import type { Usage, UsageByModel } from "./usage.ts"

/**
 * List prices of one model in nano-rupiah, for a million tokens, an image, a second of audio, a search unit. In this
 * unit 0.1 and 1.25 times a price are whole numbers.
 * @see parsePrice for the units of the config file
 */
export interface Price {
  readonly input: bigint
  readonly output: bigint
  readonly cacheRead: bigint
  readonly cacheWrite: bigint
  readonly image: bigint
  readonly audioSecond: bigint
  readonly searchUnit: bigint
}

/**
 * What a line of a batch costs as a part of the list price, unless the config sets
 * `batchPriceFactor`.
 */
export const defaultBatchPriceFactor = 0.5

const nanos = (rupiah: number | undefined): bigint => parseRupiah(String(rupiah ?? 0)) * 1000n

/**
 * Config: `input`, `output`, `cacheRead` (0.1 x input by default), `cacheWrite` (1.25 x input) in
 * Rp per 1M tokens, `image` in Rp per image, `audioSecond` in Rp per second of
 * audio, `searchUnit` in Rp per search unit.
 */
export const parsePrice = (price: { readonly [K in keyof Price]?: number | undefined }): Price => {
  const input = nanos(price.input)
  return {
    input,
    output: nanos(price.output),
    cacheRead: price.cacheRead === undefined ? input / 10n : nanos(price.cacheRead),
    cacheWrite: price.cacheWrite === undefined ? (input * 5n) / 4n : nanos(price.cacheWrite),
    image: nanos(price.image),
    audioSecond: nanos(price.audioSecond),
    searchUnit: nanos(price.searchUnit),
  }
}

export const freePrice: Price = parsePrice({})

/**
 * Prices and factor in force at a call's admission, in Rp as plain decimals, exact: per 1M tokens,
 * per image, per second of audio, per search unit.
 */
export interface PriceTag {
  readonly factor: number
  readonly models: Readonly<Record<string, Readonly<Record<keyof Price, string>>>>
}

const labels = new WeakMap<Price, PriceTag["models"][string]>()

const labelOf = (price: Price): PriceTag["models"][string] => {
  const known = labels.get(price)
  if (known) return known
  const label = Object.fromEntries(
    Object.entries(price).map(([what, nano]) => [what, formatDecimal(nano, 9)]),
  ) as PriceTag["models"][string]
  labels.set(price, label)
  return label
}

export const priceTag = (
  prices: (model: string) => Price,
  models: readonly string[],
  factor: number,
): PriceTag => ({
  factor,
  models: Object.fromEntries(models.map((model) => [model, labelOf(prices(model))])),
})

/** In femto-rupiah (1e-15 Rp). */
const femtoCost = (price: Price, usage: Usage): bigint => {
  // most counts are zero
  const times = (n: number, nanos: bigint) => (n <= 0 ? 0n : BigInt(Math.ceil(n)) * nanos)
  const tokens =
    times(usage.inputTokens, price.input) +
    times(usage.cacheReadTokens, price.cacheRead - price.input) +
    times(usage.cacheWriteTokens, price.cacheWrite - price.input) +
    times(usage.outputTokens, price.output)
  const units =
    times(usage.images, price.image) +
    times(usage.audioSeconds, price.audioSecond) +
    times(usage.searchUnits, price.searchUnit)
  return tokens + units * 1_000_000n
}

/**
 * Prices of the worst case: a token that may be cached costs the input's price unless its own is
 * higher.
 */
const worstPrice = (price: Price): Price => {
  const atLeastInput = (own: bigint) => (own < price.input ? price.input : own)
  return {
    ...price,
    cacheRead: atLeastInput(price.cacheRead),
    cacheWrite: atLeastInput(price.cacheWrite),
  }
}

/**
 * Returns the price of `usage`, rounded up once to a micro-rupiah. `factor` is 1, or the batch
 * factor; at most 3 decimals.
 */
export const costOf = (
  prices: (model: string) => Price,
  usage: UsageByModel,
  factor = 1,
): Micros => {
  const thousandths = BigInt(Math.round(factor * 1000))
  let sum = 0n
  for (const [model, used] of Object.entries(usage))
    sum += femtoCost(prices(model), used) * thousandths
  // thousandths of a femto-rupiah in a micro-rupiah
  const divisor = 1_000_000_000_000n
  return (sum + divisor - 1n) / divisor
}

/**
 * The most that a call within `bound` costs. A bound holds the maximum of each count: the tokens
 * that may be read from a cache are maybe
 * not there, and those that may be written are maybe already read, so neither makes it cheaper.
 */
export const worstCostOf = (
  prices: (model: string) => Price,
  bound: UsageByModel,
  factor = 1,
): Micros => costOf((model) => worstPrice(prices(model)), bound, factor)
