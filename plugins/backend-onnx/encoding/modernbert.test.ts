import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, test } from "vitest"
import { linearlyScaled, type Rotary } from "../architectures/rotary.ts"
import { changedEncoder } from "../testing/changed-encoder.ts"
import { encoderFolder } from "../testing/fixtures.ts"
import { openEncoder } from "../testing/open-encoder.ts"
import { changeSafetensors } from "../testing/safetensors-writer.ts"
import { folderEncoder } from "./families.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-modernbert-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const changed = (config: object, name = "modernbert") =>
  changedEncoder(root, encoderFolder(name), { "config.json": config })

const rotaryOf = (config: object) =>
  (folderEncoder(changed(config)).config as unknown as { rotary: Record<string, Rotary> }).rotary

describe("rope_scaling, the form of transformers 4", () => {
  const plain = rotaryOf({})
  const slower = {
    global: { rotations: linearlyScaled(plain.global!.rotations, 4) },
    local: { rotations: linearlyScaled(plain.local!.rotations, 4) },
  }

  test.each([
    { rope_type: "linear", factor: 4 },
    { type: "linear", factor: 4 },
  ])("%o slows both kinds of layers", (rope_scaling) => {
    expect(rotaryOf({ rope_scaling })).toEqual(slower)
  })

  test("comes before what rope_parameters say of a kind", () => {
    const kind = { rope_type: "default", rope_theta: 10_000 }
    const rope_parameters = { sliding_attention: kind }
    expect(rotaryOf({ rope_parameters, rope_scaling: { rope_type: "linear", factor: 4 } })).toEqual(
      slower,
    )
  })

  test("of null is none, and one of an unknown type is refused", () => {
    expect(rotaryOf({ rope_scaling: null })).toEqual(plain)
    expect(() => rotaryOf({ rope_scaling: { rope_type: "yarn", factor: 4 } })).toThrow(
      /config.json: its rotary embedding is scaled by the 'rope_type' 'yarn'/,
    )
  })
})

/** Adds a tensor of zeros to a folder's weights. */
const withBias = (folder: string, name: string, length: number): string => {
  const bytes = 4 * length
  changeSafetensors(
    folder,
    (entries, { length: end }) => {
      entries[name] = { dtype: "F32", shape: [length], data_offsets: [end, end + bytes] }
    },
    new Uint8Array(bytes),
  )
  return folder
}

describe("a bias that its switch denies", () => {
  const graphs = join(root, "graphs")

  test.each([
    ["attention_bias", "layers.1.attn.Wqkv.bias", 96],
    ["mlp_bias", "layers.2.mlp.Wo.bias", 32],
    ["norm_bias", "layers.3.mlp_norm.bias", 32],
    ["norm_bias", "final_norm.bias", 32],
    ["norm_bias", "embeddings.norm.bias", 32],
  ])("%s: %s is refused, and read where nothing denies it", async (key, name, length) => {
    const denied = withBias(changed({ [key]: false }), name, length)
    await expect(openEncoder(denied, graphs)).rejects.toThrow(
      `it has the tensor '${name}', and '${key}' is false`,
    )
    const engine = await openEncoder(withBias(changed({ [key]: true }), name, length), graphs)
    await engine.close()
  })

  test.each([
    ["norm_bias", "model.embeddings.norm.bias"],
    ["classifier_bias", "head.dense.bias"],
  ])("%s: so is a classifier's %s", async (key, name) => {
    const denied = withBias(changed({ [key]: false }, "modernbert-classifier"), name, 32)
    await expect(openEncoder(denied, graphs)).rejects.toThrow(
      `it has the tensor '${name}', and '${key}' is false`,
    )
  })

  test("of a head that isn't used is left", async () => {
    const path = withBias(changed({ classifier_bias: false }), "head.dense.bias", 32)
    const engine = await openEncoder(path, graphs)
    await engine.close()
  })
})
