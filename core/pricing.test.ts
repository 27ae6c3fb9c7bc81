import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { costOf, freePrice, parsePrice, priceTag, worstCostOf } from "./pricing.ts"
import { type Usage, usageOf } from "./usage.ts"

const price = parsePrice({
  input: 15_000,
  output: 60_000,
  image: 25,
  audioSecond: 0.1,
  searchUnit: 2.5,
})
const cost = (usage: Partial<Usage>, factor?: number) =>
  costOf(() => price, { m: usageOf(usage) }, factor)

describe("the cost of a call", () => {
  it("is that of the price list", () => {
    expect(cost({ inputTokens: 1_000_000 })).toBe(15_000_000_000n)
    expect(cost({ outputTokens: 1_000_000 })).toBe(60_000_000_000n)
    expect(cost({ images: 2 })).toBe(50_000_000n)
    expect(cost({ searchUnits: 1 })).toBe(2_500_000n)
    expect(cost({ audioSeconds: 61 })).toBe(6_100_000n)
    expect(cost({})).toBe(0n)
  })

  it("counts cache reads at a tenth and cache writes at five quarters of the input, both inside of it", () => {
    expect(cost({ inputTokens: 1000, cacheReadTokens: 1000 })).toBe(1_500_000n)
    expect(cost({ inputTokens: 1000, cacheWriteTokens: 1000 })).toBe(18_750_000n)
    expect(cost({ inputTokens: 1000, cacheReadTokens: 400, cacheWriteTokens: 100 })).toBe(
      ((500n + 40n + 125n) * 15_000_000_000n) / 1_000_000n,
    )
  })

  it("takes the prices of cache reads and writes from the config where it names them", () => {
    const own = parsePrice({ input: 15_000, cacheRead: 3_000, cacheWrite: 0 })
    expect(
      costOf(() => own, {
        m: usageOf({ inputTokens: 1000, cacheReadTokens: 400, cacheWriteTokens: 100 }),
      }),
    ).toBe(500n * 15_000n + 400n * 3_000n)
  })

  it("does not price reasoning twice: it is part of the output", () => {
    expect(cost({ outputTokens: 10, reasoningTokens: 10 })).toBe(cost({ outputTokens: 10 }))
  })

  it("is half in a batch, and a cache read 0.05 of the input there", () => {
    expect(cost({ inputTokens: 1_000_000 }, 0.5)).toBe(7_500_000_000n)
    expect(cost({ inputTokens: 1_000_000, cacheReadTokens: 1_000_000 }, 0.5)).toBe(750_000_000n)
  })

  it("is rounded once, up, over all models together", () => {
    const tiny = parsePrice({ input: 0.000001 })
    const one = usageOf({ inputTokens: 1 })
    expect(costOf(() => tiny, { a: one })).toBe(1n)
    expect(costOf(() => tiny, { a: one, b: one })).toBe(1n)
    expect(costOf(() => freePrice, { a: one })).toBe(0n)
  })
})

const count = fc.nat(1_000_000)
const usages = fc
  .record({
    inputTokens: count,
    cacheReadTokens: count,
    cacheWriteTokens: count,
    outputTokens: count,
    reasoningTokens: count,
    images: fc.nat(8),
    audioSeconds: fc.nat(90),
    searchUnits: fc.nat(2),
  })
  .map(usageOf)
const rupiah = fc.nat(100_000)
const priceLists = fc
  .record(
    { input: rupiah, output: rupiah, cacheRead: rupiah, cacheWrite: rupiah },
    { requiredKeys: ["input", "output"] },
  )
  .map(parsePrice)

it("of a bound covers whatever stays below it, whether or not the cache helps, at any prices", () => {
  fc.assert(
    fc.property(
      usages,
      usages,
      priceLists,
      fc.constantFrom(1, 0.5),
      (bound, other, prices, factor) => {
        const least = (key: keyof Usage) => Math.min(bound[key], other[key])
        const inputTokens = least("inputTokens")
        const cacheReadTokens = Math.min(inputTokens, least("cacheReadTokens"))
        const cacheWriteTokens = Math.min(inputTokens - cacheReadTokens, least("cacheWriteTokens"))
        const below = usageOf({
          inputTokens,
          cacheReadTokens,
          cacheWriteTokens,
          outputTokens: least("outputTokens"),
          images: least("images"),
          audioSeconds: least("audioSeconds"),
          searchUnits: least("searchUnits"),
        })
        const used = costOf(() => prices, { m: below }, factor)
        expect(used <= worstCostOf(() => prices, { m: bound }, factor)).toBe(true)
      },
    ),
  )
})

it("of a bound without cached tokens is the cost of that usage", () => {
  const bound = usageOf({ inputTokens: 1000, outputTokens: 7 })
  expect(worstCostOf(() => price, { m: bound }, 0.5)).toBe(cost(bound, 0.5))
})

it("refuses prices with more than 6 decimals", () => {
  expect(() => parsePrice({ input: 0.0000001 })).toThrow(RangeError)
})

it("writes the prices that stay with a call as exact decimals", () => {
  const odd = parsePrice({ input: 0.000001, image: 750 })
  expect(priceTag(() => odd, ["m"], 0.5)).toEqual({
    factor: 0.5,
    models: {
      m: {
        input: "0.000001",
        output: "0",
        cacheRead: "0.0000001",
        cacheWrite: "0.00000125",
        image: "750",
        audioSecond: "0",
        searchUnit: "0",
      },
    },
  })
})
