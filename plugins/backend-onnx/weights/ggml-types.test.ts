import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { groupValues } from "./ggml-blocks.ts"
import { ggmlTypeLabel, ggmlTypes } from "./ggml-types.ts"

/** Random blocks, decoded by another implementation: see fixtures/make-fixtures.py. */
const blocks = JSON.parse(
  readFileSync(join(import.meta.dirname, "..", "fixtures", "ggml-blocks.json"), "utf8"),
) as Record<string, { readonly bytes: string; readonly values: string }>
const typeNamed = (name: string) => [...ggmlTypes.values()].find((type) => type.name === name)!

test("every type but the plain one has its blocks", () => {
  expect(Object.keys(blocks).sort()).toEqual(
    [...ggmlTypes.values()]
      .map((type) => type.name)
      .filter((name) => name !== "F32")
      .sort(),
  )
})

test.each(Object.entries(blocks))("%s decodes as elsewhere", (name, { bytes, values }) => {
  const type = typeNamed(name)
  const expected = new Float32Array(Uint8Array.from(Buffer.from(values, "base64")).buffer)
  const raw = Buffer.from(bytes, "base64")
  expect((raw.length / type.blockBytes) * type.blockValues).toBe(expected.length)
  const decoded = new Float32Array(expected.length)
  type.decode(raw, decoded)
  const largest = Math.max(...expected.map(Math.abs))
  for (const [i, value] of decoded.entries())
    expect(Math.abs(value - expected[i]!)).toBeLessThanOrEqual(largest * 1e-6)
})

test("levels mean what decoding gives", () => {
  const withLevels = [...ggmlTypes.values()].filter((type) => type.levels)
  expect(withLevels.map((type) => type.name)).toEqual([
    ...["Q4_0", "Q4_1", "Q5_0", "Q5_1"],
    ...["Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS"],
  ])
  for (const type of withLevels) {
    const raw = Buffer.from(blocks[type.name]!.bytes, "base64")
    const decoded = new Float32Array((raw.length / type.blockBytes) * type.blockValues)
    type.decode(raw, decoded)
    const levels = new Uint8Array(groupValues(type.levels!.bits))
    const inGroup = levels.length
    for (let group = 0; group < decoded.length / inGroup; group++) {
      const { scale, minimum } = type.levels!.read(raw, group, levels)
      const units = type.levels!.units?.(raw, Math.floor((group * inGroup) / 256))
      if (type.name === "Q3_K") {
        // what the kernels multiply levels by, less 4, fits into 8 bits
        const steps = units!.scale && scale / units!.scale
        expect([steps >= -31, steps <= 32]).toEqual([true, true])
      }
      for (const [value, unit] of [
        [scale, units?.scale],
        [minimum, units?.minimum],
      ] as const)
        expect(value).toBe(unit ? unit * Math.round(value / unit) : value)
      for (let j = 0; j < inGroup; j++) {
        const number = type.levels!.codes?.[levels[j]!] ?? levels[j]!
        expect(Math.fround(scale * number + minimum)).toBe(decoded[inGroup * group + j])
      }
    }
  }
})

test("types that can't be read have a name too", () => {
  expect([16, 8, 999].map(ggmlTypeLabel)).toEqual(["IQ2_XXS", "Q8_0", "number 999"])
})
