import { Effect, Exit } from "effect"
import { expect, it } from "vitest"
import { checkVectors } from "./space.ts"

const isTaken = (dimensions: number, ...vectors: readonly (readonly number[])[]) =>
  Exit.isSuccess(
    Effect.runSyncExit(
      checkVectors(
        { id: "space", dimensions },
        vectors.map((vector) => Float32Array.from(vector)),
      ),
    ),
  )

it("takes vectors with a direction in what a space keeps of them, and no others", () => {
  expect(isTaken(2, [3, 4, 12], [-0.5, 0])).toBe(true)
  expect(isTaken(2, [1e-30, 0])).toBe(true)
  expect(isTaken(2, [3e38, 3e38])).toBe(true)
  for (const broken of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY])
    expect(isTaken(2, [1, 0], [1, broken])).toBe(false)
  expect(isTaken(2, [0, 0, 1])).toBe(false)
})
