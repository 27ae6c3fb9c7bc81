import { expect, test } from "vitest"
import { longs } from "../../onnx/onnx-session.ts"
import { largestGap } from "../../testing/fixtures.ts"
import {
  diffusionFolder,
  expectedJson,
  expectedTensors,
  partConfig,
  withPart,
} from "../transformers/testing/run-part.ts"
import { buildClipEncoder, clipConfig } from "./clip-encoder.ts"
import { openClipTokenizer } from "./clip-tokenizer.ts"

interface Texts {
  readonly text: { readonly prompt: string; readonly ids: readonly number[] }
}

test.each(["sd", "lcm"])("reads a prompt as %s does", async (family) => {
  const { text } = expectedJson<Texts>(family)
  const tokenizer = openClipTokenizer(diffusionFolder(family, "tokenizer"), 77)
  const { ids, end } = await tokenizer.encode(text.prompt)
  expect(ids).toEqual(text.ids)
  const wanted = expectedTensors(family)
  const found = await withPart(
    [family, "text_encoder"],
    "model.safetensors",
    (building) => buildClipEncoder(building, clipConfig(partConfig(family, "text_encoder"))),
    (session) => session.run({ input_ids: longs(ids, [1, ids.length]), end: longs([end]) }),
  )
  for (const name of ["states", "penultimate", "pooled"]) {
    const { data, dims } = wanted.floats(`text.${name}`)
    expect(found[name]!.dims).toEqual(dims)
    expect(largestGap(found[name]!.data as Float32Array, data)).toBeLessThan(1e-4)
  }
})

test("cuts a long prompt, and knows no special tokens in it", async () => {
  const tokenizer = openClipTokenizer(diffusionFolder("sd", "tokenizer"), 77)
  const { ids: long, end } = await tokenizer.encode("a red cat ".repeat(100))
  expect([long.length, end]).toEqual([77, 76])
  const { ids } = await tokenizer.encode("<|endoftext|> tree")
  const special = long[76]
  expect(ids.indexOf(special!)).toBeGreaterThan(4)
})
