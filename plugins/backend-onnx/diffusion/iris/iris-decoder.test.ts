import { expect, test } from "vitest"
import { floats } from "../../onnx/onnx-session.ts"
import { largestGap } from "../../testing/fixtures.ts"
import { expectedTensors, partConfig, withPart } from "../transformers/testing/run-part.ts"
import { buildIrisDecoder, irisDecoderConfig } from "./iris-decoder.ts"

test("draws what its recipe draws", async () => {
  const config = irisDecoderConfig(partConfig("iris", "decoder"))
  const tensors = expectedTensors("iris")
  const canvas = tensors.floats("decoder.canvas")
  const { pixels } = await withPart(
    ["iris", "decoder"],
    "diffusion_pytorch_model.safetensors",
    (building) => buildIrisDecoder(building, config),
    (session) => session.run({ canvas: floats(canvas.data, canvas.dims) }),
  )
  const wanted = tensors.floats("decoder.pixels")
  expect(pixels!.dims).toEqual(wanted.dims)
  expect(largestGap(pixels!.data as Float32Array, wanted.data)).toBeLessThan(1e-4)
})
