import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import { largestGap } from "../../testing/fixtures.ts"
import { diffusionFolder, expectedJson, expectedTensors } from "../transformers/testing/run-part.ts"
import { openFlux } from "./flux.ts"
import { openFlux2 } from "./flux2.ts"
import { openSd3 } from "./sd3.ts"
import { withModel } from "./testing/draw.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-folders-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

type Json = Record<string, unknown>

/** A copy of a fixture with another JSON file. */
const changed = (family: string, file: string, change: (json: Json) => Json): string => {
  const folder = mkdtempSync(join(root, `${family}-`))
  cpSync(diffusionFolder(family), folder, { recursive: true })
  const path = join(folder, file)
  const json = JSON.parse(readFileSync(path, "utf8")) as Json
  writeFileSync(path, JSON.stringify(change(json)))
  return folder
}

test("Stable Diffusion 3 reads zeros in place of the states of a T5 that it has not", async () => {
  const none = { text_encoder_3: [null, null], tokenizer_3: [null, null] }
  const folder = changed("sd3", "model_index.json", (json) => ({ ...json, ...none }))
  const { prompt } = expectedJson<{ readonly prompt: { readonly text: string } }>("sd3")
  const tensors = expectedTensors("sd3")
  await withModel(openSd3, folder, async (model) => {
    const { context, pooled } = await model.encodePrompt(prompt.text)
    const width = context!.dims[2]!
    expect(context!.dims).toEqual([1, 77 + 256, width])
    const clip = tensors.floats("prompt.context").data.subarray(0, 77 * width)
    expect(largestGap(context!.data.subarray(0, 77 * width), clip)).toBeLessThan(1e-4)
    expect(context!.data.subarray(77 * width).every((value) => value === 0)).toBe(true)
    expect(largestGap(pooled!.data, tensors.floats("prompt.pooled").data)).toBeLessThan(1e-4)
  })
})

test.each([
  [
    "a part of another class",
    openFlux2,
    "flux2",
    "model_index.json",
    { text_encoder: ["transformers", "Mistral3ForConditionalGeneration"] },
    /model_index\.json: its 'text_encoder' is a Mistral3ForConditionalGeneration/,
  ],
  [
    "a part that is not there",
    openFlux,
    "flux",
    "model_index.json",
    { transformer: [null, null] },
    /model_index\.json: it has no 'transformer'/,
  ],
  [
    "sizes that its tensors don't have",
    openSd3,
    "sd3",
    "transformer/config.json",
    { joint_attention_dim: 48 },
    /transformer.*'context_embedder\.weight' is 32 x 40, its configuration asks for 32 x 48/,
  ],
  [
    "axes that don't fit its heads",
    openFlux,
    "flux",
    "transformer/config.json",
    { axes_dims_rope: [4, 6, 8] },
    /'axes_dims_rope' is 4, 6, 8, and a head has 16 dimensions/,
  ],
  [
    "a text encoder with too few layers",
    openFlux2,
    "flux2",
    "text_encoder/config.json",
    { num_hidden_layers: 20, layer_types: new Array<string>(20).fill("full_attention") },
    /its text encoder has 20 layers, and states after 27 are read/,
  ],
  [
    "an activation that T5 1.1 has not",
    openFlux,
    "flux",
    "text_encoder_2/config.json",
    { feed_forward_proj: "relu" },
    /'feed_forward_proj' is 'relu'/,
  ],
])("refuses %s", async (_, open, family, file, change, message) => {
  const folder = changed(family, file, (json) => ({ ...json, ...change }))
  await expect(withModel(open, folder, () => Promise.resolve())).rejects.toThrow(message)
})
