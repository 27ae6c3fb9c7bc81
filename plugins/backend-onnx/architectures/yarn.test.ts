import { expect, test } from "vitest"
import { Damaged } from "../weights/model-file-error.ts"
import { yarnIn, yarnMagnitude, yarnRotary, yarnWindow } from "./yarn.ts"

const read = (scaling: object) =>
  yarnIn(new Map(Object.entries({ original_max_position_embeddings: 64, ...scaling })))

// the wanted numbers are those of transformers 5.24
test.each([
  [
    "Qwen3's card",
    { factor: 4, original_max_position_embeddings: 32_768 },
    1e6,
    16,
    [
      1, 0.17782793939113617, 0.03162277862429619, 0.004217559937387705, 0.0005000000237487257,
      4.4456985051510856e-5, 7.905693564680405e-6, 1.405853367941745e-6,
    ],
    1.138629436111989,
  ],
  [
    "every key",
    { factor: 32, beta_fast: 8, beta_slow: 0.5, truncate: false, mscale: 1, mscale_all_dim: 0.5 },
    1e4,
    8,
    [1, 0.027987388893961906, 0.0003124999930150807, 3.125000148429535e-5],
    1.1476934674947155,
  ],
  [
    "a magnitude of its own",
    { factor: 8, original_max_position_embeddings: 16, attention_factor: 0.7 },
    1e4,
    8,
    [1, 0.012500000186264515, 0.0012499999720603228, 0.0001250000059371814],
    0.7,
  ],
])("%s", (_, scaling, base, dimensions, rotations, magnitude) => {
  const found = yarnRotary(base, dimensions, read(scaling))
  expect(
    found.rotations.map((rotation, i) => Math.abs(rotation / rotations[i]! - 1) < 1e-6),
  ).toEqual(rotations.map(() => true))
  expect(found.magnitude).toBeCloseTo(magnitude, 12)
})

test("where the ramp would be empty, or turned around, it is as transformers has it", () => {
  const kept = ({ rotations }: { readonly rotations: readonly number[] }) =>
    rotations.map((rotation, i) => Math.round((1e4 ** (-i / 4) / rotation) * 1000) / 1000)
  expect(
    kept(yarnRotary(1e4, 8, read({ factor: 4, original_max_position_embeddings: 4 }))),
  ).toEqual([1, 4, 4, 4])
  expect(kept(yarnRotary(1e4, 8, read({ factor: 4, beta_fast: 1, beta_slow: 32 })))).toEqual([
    4, 1, 1, 1,
  ])
})

test("a zero stands for the default", () => {
  expect(read({ factor: 4, beta_fast: 0, beta_slow: 0, mscale: 0, mscale_all_dim: 0 })).toEqual(
    read({ factor: 4 }),
  )
  expect([yarnMagnitude(1), yarnMagnitude(0.5)]).toEqual([1, 1])
  expect(yarnWindow(read({ factor: 4 }))).toBe(256)
})

test("a base of one has no pair that turns", () => {
  expect(() => yarnRotary(1, 8, read({ factor: 4 }))).toThrow(Damaged)
})
