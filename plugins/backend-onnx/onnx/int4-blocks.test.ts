import fc from "fast-check"
import { expect, test } from "vitest"
import { ggmlTypeNamed } from "../testing/ggml-encode.ts"
import { quantizeRowTo4 } from "./int4-blocks.ts"

/** The values of a row as `MatMulNBits` and the shifts decode it. */
const dequantized = (name: string, bytes: Uint8Array, columns: number): readonly number[] => {
  const row = {
    q: new Uint8Array(columns / 2),
    scales: new Float32Array(columns / 32),
    shifts: new Float32Array(columns / 32),
  }
  quantizeRowTo4(ggmlTypeNamed(name).type, bytes, new Float32Array(columns), row)
  return Array.from(
    { length: columns },
    (_, i) =>
      row.scales[i >> 5]! * (((row.q[i >> 1]! >> (i % 2 ? 4 : 0)) & 15) - 8) + row.shifts[i >> 5]!,
  )
}
const bytesOf = (values: Float32Array) => new Uint8Array(values.buffer)

const floats = fc.float32Array({
  minLength: 64,
  maxLength: 64,
  noNaN: true,
  noDefaultInfinity: true,
  min: -100,
  max: 100,
})

test("no value is off by more than the range that may be left out, and all of them are no worse than rounding to 16 equal steps", () => {
  fc.assert(
    fc.property(floats, (values) => {
      const found = dequantized("F32", bytesOf(values), 64)
      for (const start of [0, 32]) {
        const block = values.subarray(start, start + 32)
        const [low, high] = [Math.min(...block), Math.max(...block)]
        const step = (high - low) / 15
        const plain = block.reduce(
          (sum, value) => sum + (low + Math.round((value - low) / (step || 1)) * step - value) ** 2,
          0,
        )
        const ours = block.reduce((sum, value, i) => sum + (found[start + i]! - value) ** 2, 0)
        expect(ours).toBeLessThanOrEqual(plain * 1.001 + 1e-6)
      }
    }),
  )
})

test("sixteen equal steps, equal values and zeros are kept exactly", () => {
  const steps = Float32Array.from({ length: 64 }, (_, i) => (i < 32 ? 0.25 * (i % 16) - 1 : 7))
  expect(dequantized("F32", bytesOf(steps), 64)).toEqual([...steps])
  expect(dequantized("F32", bytesOf(new Float32Array(32)), 32)).toEqual(new Array(32).fill(0))
})

test("NaN and infinity are refused", () => {
  for (const wrong of [Number.NaN, Number.POSITIVE_INFINITY])
    expect(() => dequantized("F32", bytesOf(new Float32Array(32).fill(wrong, 3, 4)), 32)).toThrow(
      /not a finite number/,
    )
  expect(() =>
    dequantized("Q4_1", Uint8Array.of(0, 0x38, 0, 0x7e, ...new Uint8Array(16)), 32),
  ).toThrow(/not a finite number/)
})
