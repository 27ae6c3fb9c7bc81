import fc from "fast-check"
import { expect, it } from "vitest"
import { floatOfHalf, roundedToHalves, toHalves, unitPrefix } from "./half-floats.ts"

it("reads every half within -1 to 1 and writes it back", () => {
  const halves = Array.from({ length: 65_536 }, (_, half) => half).filter(
    (half) => (half & 0x7fff) <= 0x3c00,
  )
  expect(floatOfHalf[0x3c00]).toBe(1)
  expect(floatOfHalf[0x3555]).toBe(0.333251953125)
  expect(floatOfHalf[1]).toBe(2 ** -24)
  const back = toHalves(Float32Array.from(halves, (half) => floatOfHalf[half]!))
  expect(Array.from(back)).toEqual(halves)
})

it("takes the nearest half, and the even one of two", () => {
  const value = fc.oneof(
    fc.float({ min: -1, max: 1, noNaN: true }),
    fc.float({ min: Math.fround(-1e-4), max: Math.fround(1e-4), noNaN: true }),
    // exactly between two halves
    fc
      .integer({ min: 0, max: 0x3bff })
      .map((half) => (floatOfHalf[half]! + floatOfHalf[half + 1]!) / 2),
  )
  fc.assert(
    fc.property(value, (float) => {
      const half = toHalves(Float32Array.from([float]))[0]!
      const magnitude = half & 0x7fff
      const gap = (other: number) => Math.abs(Math.abs(float) - floatOfHalf[other]!)
      for (const other of [magnitude - 1, magnitude + 1].filter((one) => one >= 0)) {
        expect(gap(magnitude)).toBeLessThanOrEqual(gap(other))
        if (gap(magnitude) === gap(other)) expect(half % 2).toBe(0)
      }
    }),
  )
})

it("cuts a vector to its prefix, of norm 1; nothing stays nothing", () => {
  const unit = unitPrefix(Float32Array.from([3, 4, 12]), 2)
  expect(Array.from(unit, (value) => Math.round(value * 1000))).toEqual([600, 800])
  expect(Array.from(unitPrefix(Float32Array.from([0, 0, 1]), 2))).toEqual([0, 0])
  expect(Math.hypot(...roundedToHalves(unit))).toBeCloseTo(1, 3)
})
