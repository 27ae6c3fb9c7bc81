import { expect, test } from "vitest"
import { averaged } from "./small-latents.ts"

const latents = (channels: number, rows: number, columns: number) => ({
  data: Float32Array.from({ length: channels * rows * columns }, (_, i) => i),
  dims: [1, channels, rows, columns],
})

test("averages squares of each channel, also where the last ones are cut", () => {
  const { data, dims } = averaged(latents(2, 3, 4), 2)
  expect(dims).toEqual([1, 2, 2, 2])
  expect([...data]).toEqual([2.5, 4.5, 8.5, 10.5, 14.5, 16.5, 20.5, 22.5])
})

test("keeps the proportions, and latents that are small enough", () => {
  expect(averaged(latents(1, 120, 60), 32).dims).toEqual([1, 1, 30, 15])
  const small = latents(4, 32, 20)
  expect(averaged(small, 32)).toBe(small)
})
