import { expect, test } from "vitest"
import { halfAt, toHalves } from "./float16.ts"

const halfOf = (value: number): number => {
  const into = new Uint16Array(1)
  // an `expect` for each of 160,000 values takes seconds
  if (toHalves(Float32Array.of(value), into) !== undefined) expect.fail(`no half is near ${value}`)
  return into[0]!
}
const floatOf = (bits: number): number => halfAt(Uint8Array.of(bits & 255, bits >> 8), 0)

test("every half is its own nearest one", () => {
  for (const sign of [0, 0x8000])
    for (let bits = 0; bits < 0x7c00; bits++) {
      const value = floatOf(sign | bits)
      if (halfOf(value) !== (sign | bits)) expect.fail(`${value} is not ${sign | bits}`)
    }
})

test("what lies between two halves goes to the nearer one, and to the even one in the middle", () => {
  for (let bits = 0; bits < 0x7bff; bits++) {
    const [low, high] = [floatOf(bits), floatOf(bits + 1)]
    const at = (share: number) => halfOf(low + share * (high - low))
    const even = bits % 2 === 0 ? bits : bits + 1
    if (at(0.25) !== bits || at(0.5) !== even || at(0.75) !== bits + 1)
      expect.fail(`between ${low} and ${high}`)
  }
})

test("the first value that no half is near is returned", () => {
  const into = new Uint16Array(3)
  expect(toHalves(Float32Array.of(1, -65_519, 65_519), into)).toBeUndefined()
  expect([...into]).toEqual([0x3c00, 0xfbff, 0x7bff])
  expect(toHalves(Float32Array.of(1, -65_520, 70_000), into)).toBe(-65_520)
  expect(toHalves(Float32Array.of(2 ** -26, -(2 ** -149)), into)).toBeUndefined()
  expect([...into.subarray(0, 2)]).toEqual([0, 0x8000])
})
