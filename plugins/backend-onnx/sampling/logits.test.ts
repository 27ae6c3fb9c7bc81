import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { runs } from "../../../testing/property.ts"
import { passes, plainPasses } from "./logits.ts"
import type { TokenMask } from "./token-mask.ts"

const native = passes === plainPasses ? undefined : passes

const logit = fc.oneof(
  { weight: 20, arbitrary: fc.float({ min: -60, max: 60, noNaN: true }) },
  { weight: 1, arbitrary: fc.constant(Number.NEGATIVE_INFINITY) },
)
/** Rows of any length: also such as do not fill the registers of a processor. */
const rows = fc
  .array(logit, { minLength: 1, maxLength: 700, size: "max" })
  .map((values) => Float32Array.from(values))
/** Weights whose sums are exact, in any order. */
const exact = fc
  .array(fc.integer({ min: 0, max: 1_024 }), { minLength: 1, maxLength: 700, size: "max" })
  .map((values) => Float32Array.from(values, (value) => value / 1_024))
const sharedMask = (words: readonly number[]): TokenMask => {
  const mask = new Uint32Array(new SharedArrayBuffer(words.length * 4))
  mask.set(words)
  return mask
}
const word = fc.oneof(fc.constantFrom(0, 0xffff_ffff), fc.integer({ min: 0, max: 0xffff_ffff }))
/** Shorter and longer than the rows; in shared memory, as the thread of the grammars has them. */
const masks = fc
  .array(word, { maxLength: 24, size: "max" })
  .chain((words) => fc.constantFrom(Uint32Array.from(words), sharedMask(words)))
/** With what is no number, too. */
const anyRows = fc
  .array(fc.oneof({ weight: 200, arbitrary: logit }, fc.constantFrom(Number.NaN, Infinity)), {
    minLength: 1,
    maxLength: 700,
    size: "max",
  })
  .map((values) => Float32Array.from(values))
const some = { numRuns: runs(500) }

const listOf = (of: typeof passes, weights: Float32Array, least: number, room: number) => {
  const tokens = new Int32Array(room)
  const count = of.listLikely(weights, least, tokens)
  return count > room ? "more" : [...tokens.subarray(0, count)]
}

const isAllowed = (mask: TokenMask, id: number): boolean =>
  id < mask.length * 32 && ((mask[id >> 5]! >>> (id & 31)) & 1) === 1

describe.each([["plain", plainPasses] as const, ...(native ? [["native", native] as const] : [])])(
  "the %s passes",
  (_, of) => {
    test("find the largest, and what is no number", () => {
      fc.assert(
        fc.property(rows, fc.nat(), (logits, at) => {
          expect(of.largest(logits)).toBe(Math.max(...logits))
          for (const wrong of [Number.NaN, Number.POSITIVE_INFINITY]) {
            const unsound = logits.slice()
            unsound[at % unsound.length] = wrong
            expect(of.largest(unsound)).toBeNaN()
          }
        }),
        some,
      )
      expect(of.largest(new Float32Array())).toBe(Number.NEGATIVE_INFINITY)
    })

    test("forbid what a mask does not allow, and find the largest of what it does", () => {
      fc.assert(
        fc.property(anyRows, masks, (row, mask) => {
          const wanted = row.map((value, id) => (isAllowed(mask, id) ? value : -Infinity))
          const logits = row.slice()
          expect(of.largestAllowed(logits, mask)).toBe(plainPasses.largest(wanted))
          expect(logits).toEqual(wanted)
        }),
        some,
      )
      expect(of.largestAllowed(new Float32Array(), Uint32Array.of(1))).toBe(-Infinity)
    })

    test("weigh by the exponential", () => {
      fc.assert(
        fc.property(rows, fc.double({ min: 0.01, max: 100, noNaN: true }), (logits, scale) => {
          const largest = Math.max(...logits)
          fc.pre(largest > Number.NEGATIVE_INFINITY)
          const weights = logits.slice()
          const sum = of.weigh(weights, largest, scale)
          let wanted = 0
          for (const [i, logit] of logits.entries()) {
            const power = (logit - largest) * scale
            const weight = Math.exp(power)
            wanted += weight
            // a float of a product has an error that grows with it
            const close = (1e-5 + 2e-7 * Math.min(-power, 100)) * weight + 1e-18
            expect(Math.abs(weights[i]! - weight)).toBeLessThan(close)
          }
          expect(Math.abs(sum / wanted - 1)).toBeLessThan(1e-5)
          expect(Math.max(...weights)).toBe(1)
        }),
        some,
      )
    })

    test("pick where the sum exceeds the target, and never what has no weight", () => {
      fc.assert(
        fc.property(exact, fc.integer({ min: 0, max: 1_023 }), (weights, part) => {
          const sum = weights.reduce((all, weight) => all + weight, 0)
          fc.pre(sum > 0)
          const target = (sum * part) / 1_024
          let left = target
          const wanted = weights.findIndex((weight) => {
            left -= weight
            return left < 0
          })
          expect(of.pick(weights, target)).toBe(wanted)
          expect(of.pick(weights, 2 * sum)).toBe(weights.findLastIndex((weight) => weight > 0))
        }),
        some,
      )
      expect(of.pick(new Float32Array(100), 0)).toBe(0)
    })

    test("list what is likely, where it has room", () => {
      fc.assert(
        fc.property(exact, fc.integer({ min: 1, max: 1_024 }), fc.nat(40), (weights, n, room) => {
          const least = n / 1_024
          const all = [...weights.keys()].filter((id) => weights[id]! >= least)
          expect(listOf(of, weights, least, room)).toEqual(all.length > room ? "more" : all)
        }),
        some,
      )
    })
  },
)
