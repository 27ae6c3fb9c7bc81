import { expect, test } from "vitest"
import { longs } from "../../onnx/onnx-session.ts"
import { largestGap } from "../../testing/fixtures.ts"
import {
  expectedJson,
  expectedTensors,
  partConfig,
  withPart,
} from "../transformers/testing/run-part.ts"
import { buildQwenEncoder, qwenConfig } from "./qwen3-encoder.ts"

test("makes the states of transformers after three of its layers, of padding too", async () => {
  const { prompt } = expectedJson<{
    readonly prompt: { readonly ids: readonly number[]; readonly length: number }
  }>("flux2")
  const wanted = expectedTensors("flux2").floats("prompt.context")
  const config = qwenConfig(partConfig("flux2", "text_encoder"), [9, 18, 27])
  const padding = new Array<number>(prompt.length - prompt.ids.length).fill(0)
  const { states } = await withPart(
    ["flux2", "text_encoder"],
    "model.safetensors",
    (building) => buildQwenEncoder(building, config),
    (session) =>
      session.run({
        input_ids: longs([...prompt.ids, ...padding], [1, prompt.length]),
        length: longs([prompt.ids.length]),
      }),
  )
  expect(states!.dims).toEqual([1, prompt.length, config.width])
  const all = states!.data as Float32Array
  // the reference has the real tokens, two of padding behind them, and the last two
  const first = (prompt.ids.length + 2) * config.width
  const found = [...all.subarray(0, first), ...all.subarray(all.length - 2 * config.width)]
  expect(largestGap(found, wanted.data)).toBeLessThan(1e-4)
})
