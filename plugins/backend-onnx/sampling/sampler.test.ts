import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { runs } from "../../../testing/property.ts"
import { powerOfTwo } from "./logits.ts"
import { seededRandom } from "./random.ts"
import { Sampler, type SamplerSettings } from "./sampler.ts"

const plain: SamplerSettings = {
  temperature: 1,
  topP: 1,
  frequencyPenalty: 0,
  presencePenalty: 0,
  logitBias: [],
}
const logits = fc.array(fc.float({ min: -10, max: 10, noNaN: true }), {
  minLength: 2,
  maxLength: 50,
})
const draw = (
  settings: Partial<SamplerSettings>,
  values: readonly number[],
  count = 1,
  seed = 1,
): readonly number[] => {
  const sampler = new Sampler({ ...plain, ...settings }, seededRandom(seed))
  return Array.from({ length: count }, () => sampler.next(Float32Array.from(values)))
}
const share = (drawn: readonly number[], id: number) =>
  drawn.filter((other) => other === id).length / drawn.length

test("greedy takes the first of the largest", () => {
  fc.assert(
    fc.property(logits, (values) => {
      expect(draw({ temperature: 0 }, values)).toEqual([values.indexOf(Math.max(...values))])
    }),
  )
})

test("the same seed draws the same, another seed another", () => {
  const values = Array.from({ length: 100 }, (_, i) => Math.sin(i))
  fc.assert(
    fc.property(fc.maxSafeInteger(), (seed) => {
      expect(draw({}, values, 20, seed)).toEqual(draw({}, values, 20, seed))
    }),
  )
  const streams = new Set(
    Array.from({ length: 200 }, (_, seed) => draw({}, values, 20, seed - 100).join()),
  )
  expect(streams.size).toBe(200)
  expect(draw({}, values, 20, 2 ** 40)).not.toEqual(draw({}, values, 20, 2 ** 41))
})

test("only the likeliest tokens are drawn with top-k, only likely ones with min-p", () => {
  // closer ones may have the same weight
  const apart = fc.array(fc.integer({ min: -10, max: 10 }), { minLength: 2, maxLength: 50 })
  fc.assert(
    fc.property(apart, fc.integer({ min: 1, max: 60 }), fc.nat(), (values, topK, seed) => {
      const kept = [...values.keys()]
        .sort((a, b) => values[b]! - values[a]! || a - b)
        .slice(0, topK)
      for (const id of draw({ topK }, values, 5, seed)) expect(kept).toContain(id)
    }),
  )
  fc.assert(
    fc.property(logits, fc.double({ min: 0.01, max: 1, noNaN: true }), (values, minP) => {
      const most = Math.max(...values)
      for (const id of draw({ minP }, values, 5))
        expect(Math.exp(values[id]! - most)).toBeGreaterThan(minP * 0.999)
    }),
  )
  expect(share(draw({ topK: 2 }, [1, 1, 1, 1], 2_000), 0)).toBeCloseTo(0.5, 1)
  expect(new Set(draw({ topK: 3, topP: 0.5 }, [2, 2, 2, 2], 200))).toEqual(new Set([0, 1]))
})

test("the repetition penalty counts the prompt and the answer", () => {
  const greedy = { ...plain, temperature: 0, repetitionPenalty: 2 }
  const sampler = new Sampler(greedy, seededRandom(1), [0, 3])
  const next = () => sampler.next(Float32Array.of(5, 4, 3, -1))
  expect([next(), next(), next(), next()]).toEqual([1, 2, 0, 0])
  expect(new Sampler(greedy, seededRandom(1), [1]).next(Float32Array.of(-3, -2))).toBe(0)
})

test("powers of two are close, and nothing below what counts", () => {
  fc.assert(
    fc.property(fc.double({ min: -64, max: 0, noNaN: true, minExcluded: true }), (x) => {
      expect(Math.abs(powerOfTwo(x) / 2 ** x - 1)).toBeLessThan(3e-6)
    }),
    // farthest from a whole number
    { examples: [[-0.4999999], [-0.5], [-63.4999999]] },
  )
  expect([
    powerOfTwo(0),
    powerOfTwo(-1),
    powerOfTwo(-1e9),
    powerOfTwo(Number.NEGATIVE_INFINITY),
  ]).toEqual([1, 0.5, 0, 0])
})

test("uniform numbers are uniform", () => {
  const random = seededRandom(42)
  const bins = new Array<number>(16).fill(0)
  for (let i = 0; i < 16_000; i++) {
    const value = random()
    expect(value >= 0 && value < 1).toBe(true)
    bins[Math.floor(value * 16)]!++
  }
  // chi-square with 15 degrees of freedom: above 37.7 once in a thousand seeds
  expect(bins.reduce((sum, count) => sum + (count - 1000) ** 2 / 1000, 0)).toBeLessThan(37.7)
})

describe("temperature and top_p", () => {
  const values = [Math.log(0.5), Math.log(0.3), Math.log(0.15), Math.log(0.05)]
  test("draw by the probabilities", () => {
    const drawn = draw({}, values, 20_000)
    for (const [id, p] of [0.5, 0.3, 0.15, 0.05].entries())
      expect(share(drawn, id)).toBeCloseTo(p, 1)
    const hot = draw({ temperature: 2 }, values, 20_000)
    expect(share(hot, 3)).toBeCloseTo(
      Math.sqrt(0.05) / [0.5, 0.3, 0.15, 0.05].reduce((sum, p) => sum + Math.sqrt(p), 0),
      1,
    )
  })

  test("the nucleus is the smallest set of likeliest tokens that reaches top_p", () => {
    expect(new Set(draw({ topP: 0.5 }, values, 500))).toEqual(new Set([0]))
    expect(new Set(draw({ topP: 0.51 }, values, 500))).toEqual(new Set([0, 1]))
    expect(new Set(draw({ topP: 0.81 }, values, 500))).toEqual(new Set([0, 1, 2]))
    expect(draw({ topP: 0 }, values, 50)).toEqual(new Array(50).fill(0))
  })

  test("never draws outside of the nucleus", () => {
    fc.assert(
      fc.property(
        logits,
        fc.double({ min: 0.01, max: 0.99, noNaN: true }),
        fc.nat(),
        (values, topP, seed) => {
          const weights = values.map((value) => Math.exp(value - Math.max(...values)))
          const total = weights.reduce((a, b) => a + b)
          const [id] = draw({ topP }, values, 1, seed)
          const likelier = weights
            .filter((weight) => weight > weights[id!]! * 1.000001)
            .reduce((a, b) => a + b, 0)
          expect(likelier / total).toBeLessThan(topP + 1e-5)
        },
      ),
    )
  })
})

test("penalties hold against what was drawn, the bias against everything", () => {
  const values = [3, 2.5, 2, 0]
  expect(draw({ temperature: 0, presencePenalty: 0.6 }, values, 4)).toEqual([0, 1, 0, 0])
  expect(draw({ temperature: 0, frequencyPenalty: 0.6 }, values, 4)).toEqual([0, 1, 0, 2])
  expect(draw({ temperature: 0, logitBias: [[3, 100]] }, values, 2)).toEqual([3, 3])
  expect(new Set(draw({ logitBias: [[0, -100]] }, values, 500)).has(0)).toBe(false)
  expect(draw({ temperature: 0, logitBias: [[99, 100]] }, values)).toEqual([0])
})

describe("a mask", () => {
  const masked = fc.record({
    values: fc.array(
      fc.oneof(fc.float({ min: -50, max: 50, noNaN: true }), fc.constant(Number.NEGATIVE_INFINITY)),
      { minLength: 1, maxLength: 130 },
    ),
    allowed: fc.uniqueArray(fc.nat(200), { minLength: 1 }),
    words: fc.integer({ min: 1, max: 8 }),
  })
  const settings = fc.record({
    temperature: fc.oneof(
      fc.constantFrom(0, 5e-324, 1e-9, 1e-6),
      fc.double({ min: 0, max: 2, noNaN: true }),
    ),
    topP: fc.double({ min: 0, max: 1, noNaN: true }),
    frequencyPenalty: fc.double({ min: -2, max: 2, noNaN: true }),
    presencePenalty: fc.double({ min: -2, max: 2, noNaN: true }),
    logitBias: fc.array(fc.tuple(fc.nat(200), fc.integer({ min: -100, max: 100 })), {
      maxLength: 5,
    }),
  })

  test("is kept, whatever the settings, the logits, and the lengths of both", () => {
    fc.assert(
      fc.property(masked, settings, fc.nat(), ({ values, allowed, words }, some, seed) => {
        const mask = new Uint32Array(words)
        const inside = allowed.filter((id) => id < words * 32)
        for (const id of inside) mask[id >> 5]! |= 1 << (id & 31)
        const possible = inside.filter((id) => id < values.length)
        const sampler = new Sampler(some, seededRandom(seed))
        const next = () => sampler.next(Float32Array.from(values), mask)
        if (!possible.length) expect(next).toThrow(/allows no token/)
        else for (let i = 0; i < 4; i++) expect(possible).toContain(next())
      }),
      { numRuns: runs(1_500) },
    )
  })

  test("leaves the proportions of what it allows, few or many", () => {
    const weights = Array.from({ length: 64 }, (_, id) => 1 + (id % 4))
    for (const allowed of [[2, 3, 40], weights.flatMap((_, id) => (id % 8 ? [id] : []))]) {
      const mask = new Uint32Array(2)
      for (const id of allowed) mask[id >> 5]! |= 1 << (id & 31)
      const total = allowed.reduce((sum, id) => sum + weights[id]!, 0)
      const sampler = new Sampler(plain, seededRandom(3))
      const drawn = Array.from({ length: 20_000 }, () =>
        sampler.next(Float32Array.from(weights, Math.log), mask),
      )
      for (const id of allowed)
        expect(Math.abs(share(drawn, id) - weights[id]! / total)).toBeLessThan(0.02)
    }
  })
})
