import { expect, test } from "vitest"
import { seededNoise } from "./noise.ts"

test("is normal, and goes on where it stopped", () => {
  const draw = seededNoise(1)
  const values = draw(100_001)
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length
  const square = values.reduce((sum, value) => sum + value * value, 0) / values.length
  expect(Math.abs(mean)).toBeLessThan(0.01)
  expect(Math.abs(square - 1)).toBeLessThan(0.02)
  expect(Math.max(...values)).toBeGreaterThan(3.5)
  expect(draw(4)).not.toEqual(values.subarray(0, 4))
})

test("the numbers of a seed never change", () => {
  const digits = (seed: number) => Array.from(seededNoise(seed)(4), (value) => value.toFixed(5))
  expect(digits(42)).toEqual(["-1.48408", "0.60473", "-0.84183", "-0.72231"])
  expect(digits(2 ** 31 - 1).slice(0, 2)).toEqual(["0.21640", "1.37498"])
})
