import fc from "fast-check"
import { expect, test } from "vitest"
import { type GgmlType, ggmlTypes } from "../weights/ggml-types.ts"
import { byRows } from "../weights/quantized-tensors.ts"
import { int8Row, quantizeRow } from "./int8-blocks.ts"

const typeNamed = (name: string): GgmlType =>
  [...ggmlTypes.values()].find((type) => type.name === name)!

const decoded = (type: GgmlType, bytes: Uint8Array, columns: number): Float32Array => {
  const values = new Float32Array(columns)
  type.decode(bytes, values)
  return values
}

/** The values of a row as `MatMulNBits` decodes it. */
const dequantized = (type: GgmlType, bytes: Uint8Array, columns: number) => {
  const row = int8Row(columns)
  quantizeRow(type, bytes, new Float32Array(columns), row)
  return {
    row,
    values: Array.from(
      { length: columns },
      (_, i) => row.scales[i >> 5]! * (row.q[i]! - row.zeros[i >> 5]!),
    ),
  }
}

// half-precision values of usual size: sign 0 or 1, exponent 8 to 20
const half = (bits: number) => [bits & 255, ((bits >> 8) & 0x83) | ((8 + ((bits >> 10) % 12)) << 2)]

test("the formats of ggml decode as its C code does", () => {
  // scale 0.5 (0x3800), quants 0x0f and 0xf0 in turn
  const q40 = Uint8Array.of(0, 0x38, ...Array.from({ length: 16 }, (_, i) => (i % 2 ? 0xf0 : 0x0f)))
  expect([...decoded(typeNamed("Q4_0"), q40, 32)].slice(0, 2)).toEqual([3.5, -4])
  expect([...decoded(typeNamed("Q4_0"), q40, 32)].slice(16, 18)).toEqual([-4, 3.5])
  // minimum -1 (0xbc00)
  const q41 = Uint8Array.of(
    0,
    0x38,
    0,
    0xbc,
    ...Array.from({ length: 16 }, (_, i) => (i % 2 ? 0xf0 : 0x0f)),
  )
  expect([...decoded(typeNamed("Q4_1"), q41, 32)].slice(0, 2)).toEqual([6.5, -1])
  const q80 = Uint8Array.of(0, 0x38, ...Array.from({ length: 32 }, (_, i) => (i % 2 ? 0x81 : 0x7f)))
  expect([...decoded(typeNamed("Q8_0"), q80, 32)].slice(0, 2)).toEqual([63.5, -63.5])
  expect([...decoded(typeNamed("F16"), Uint8Array.of(0, 0x38, 0, 0xbc, 1, 0), 3)]).toEqual([
    0.5,
    -1,
    2 ** -24,
  ])
  expect([...decoded(typeNamed("BF16"), Uint8Array.of(0x80, 0x3f, 0x20, 0xc1), 2)]).toEqual([
    1, -10,
  ])
})

test("levels with a scale for each row become int8 without loss, also where a block is not full", () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 80 }), (levels) => {
      const type = byRows(levels.length)
      const bytes = Buffer.concat([Buffer.from(Float32Array.of(0.375).buffer), levels])
      const { row, values } = dequantized(type, bytes, levels.length)
      expect(values).toEqual([...decoded(type, bytes, levels.length)])
      expect([...row.zeros]).toEqual([...row.zeros].fill(128))
    }),
  )
})

const quants = (count: number) => fc.uint8Array({ minLength: count, maxLength: count })

test("Q8_0 and Q4_0 become int8 without loss", () => {
  fc.assert(
    fc.property(fc.nat(65_535), quants(32), (bits, q) => {
      for (const [name, body] of [
        ["Q8_0", q],
        ["Q4_0", q.subarray(0, 16)],
      ] as const) {
        const bytes = Uint8Array.of(...half(bits), ...body)
        const { values } = dequantized(typeNamed(name), bytes, 32)
        // plus 0: a zero has no sign here
        expect(values.map((value) => value + 0)).toEqual(
          [...decoded(typeNamed(name), bytes, 32)].map((value) => value + 0),
        )
      }
    }),
  )
})

test("Q4_1 becomes int8 with an error of at most a 16th of a step, and blocks that don't fit go through floats", () => {
  fc.assert(
    fc.property(fc.nat(65_535), fc.nat(65_535), quants(16), (scaleBits, minimumBits, q) => {
      const bytes = Uint8Array.of(...half(scaleBits & 0x7fff), ...half(minimumBits), ...q)
      const exact = decoded(typeNamed("Q4_1"), bytes, 32)
      const { values } = dequantized(typeNamed("Q4_1"), bytes, 32)
      const step = decoded(typeNamed("F16"), bytes.subarray(0, 2), 1)[0]!
      const largest = Math.max(...exact.map(Math.abs))
      for (const [i, value] of values.entries())
        expect(Math.abs(value - exact[i]!)).toBeLessThanOrEqual(Math.max(step / 16, largest / 250))
    }),
  )
})

test("floats become int8 with an error of half a step, whatever the length of the row", () => {
  fc.assert(
    fc.property(
      fc.array(fc.float({ noNaN: true, noDefaultInfinity: true, min: -100, max: 100 }), {
        minLength: 1,
        maxLength: 100,
      }),
      (list) => {
        const exact = Float32Array.from(list)
        const { row, values } = dequantized(
          typeNamed("F32"),
          new Uint8Array(exact.buffer),
          exact.length,
        )
        for (const [i, value] of values.entries())
          expect(Math.abs(value - exact[i]!)).toBeLessThanOrEqual(
            row.scales[i >> 5]! * 0.5001 + 1e-30,
          )
      },
    ),
  )
})

test("NaN and infinity are refused in every format", () => {
  expect(() =>
    dequantized(typeNamed("Q8_0"), Uint8Array.of(0, 0x7e, ...new Uint8Array(32)), 32),
  ).toThrow(/finite/)
  expect(() =>
    dequantized(typeNamed("Q4_1"), Uint8Array.of(0, 0x38, 0, 0x7c, ...new Uint8Array(16)), 32),
  ).toThrow(/finite/)
  expect(() =>
    dequantized(typeNamed("F32"), new Uint8Array(Float32Array.of(1, Number.NaN).buffer), 2),
  ).toThrow(/finite/)
})
