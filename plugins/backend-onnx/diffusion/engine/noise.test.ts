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
  const fixed = Array.from(seededNoise(42)(4), (value) => Number(value.toFixed(5)))
  expect(Array.from(seededNoise(42)(4), (value) => Number(value.toFixed(5)))).toEqual(fixed)
  expect(Array.from(seededNoise(43)(4), (value) => Number(value.toFixed(5)))).not.toEqual(fixed)
})
