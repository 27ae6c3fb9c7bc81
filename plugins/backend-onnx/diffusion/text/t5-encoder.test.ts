import { expect, test } from "vitest"
import { longs } from "../../onnx/onnx-session.ts"
import { largestGap, relativeError } from "../../testing/fixtures.ts"
import {
  expectedJson,
  expectedTensors,
  partConfig,
  withPart,
} from "../transformers/testing/run-part.ts"
import { bucketOf, buildT5Encoder, t5Config } from "./t5-encoder.ts"

const statesOf = (ids: readonly number[], precision: "fp32" | "int8" = "fp32") =>
  withPart(
    ["flux", "text_encoder_2"],
    "model.safetensors",
    (building) => buildT5Encoder(building, t5Config(partConfig("flux", "text_encoder_2"))),
    async (session) => (await session.run({ input_ids: longs(ids, [1, ids.length]) })).states!,
    precision,
  )

test("makes the states of transformers, of padding too", async () => {
  const { t5 } = expectedJson<{ readonly t5: { readonly ids: readonly number[] } }>("flux")
  const wanted = expectedTensors("flux").floats("t5.output")
  const states = await statesOf(t5.ids)
  expect(states.dims).toEqual(wanted.dims)
  expect(largestGap(states.data as Float32Array, wanted.data)).toBeLessThan(1e-4)
  const rounded = await statesOf(t5.ids, "int8")
  expect(relativeError([rounded.data as Float32Array], [wanted.data])).toBeLessThan(0.05)
})

test("divides distances into buckets: near ones alone, far ones together, by direction", () => {
  const size = { buckets: 32, farthest: 128 }
  expect([0, 1, 7, 8, 11, 12, 15, 16, 127, 500].map((far) => bucketOf(-far, size))).toEqual([
    0, 1, 7, 8, 8, 9, 9, 10, 15, 15,
  ])
  expect([1, 7, 8, 128].map((far) => bucketOf(far, size))).toEqual([17, 23, 24, 31])
})
