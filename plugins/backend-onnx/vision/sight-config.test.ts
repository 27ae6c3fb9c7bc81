import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { folderConfig } from "../architectures/folder-config.ts"
import { tilePlan } from "../architectures/image-tiling.ts"
import { sightConfig } from "./sight-config.ts"

const root = mkdtempSync(join(tmpdir(), "rakit-sight-configs-"))
afterAll(() => rmSync(root, { recursive: true, force: true }))

const folderOf = (config: object, preprocessor: object = {}) => {
  const folder = mkdtempSync(join(root, "folder-"))
  writeFileSync(join(folder, "config.json"), JSON.stringify(config))
  writeFileSync(join(folder, "preprocessor_config.json"), JSON.stringify(preprocessor))
  return folder
}
const read = (config: object, preprocessor?: object) => sightConfig(folderOf(config, preprocessor))

/** What the published file of SmolVLM-256M-Instruct says of its parts. */
const smolvlm = {
  model_type: "idefics3",
  scale_factor: 4,
  image_token_id: 49_190,
  tie_word_embeddings: false,
  text_config: {
    model_type: "llama",
    hidden_size: 576,
    intermediate_size: 1536,
    num_attention_heads: 9,
    num_hidden_layers: 30,
    num_key_value_heads: 3,
    head_dim: 64,
    max_position_embeddings: 8192,
    rope_theta: 100_000,
    vocab_size: 49_280,
  },
  vision_config: { hidden_size: 768, image_size: 512, num_attention_heads: 12, patch_size: 16 },
}
const splitting = { size: { longest_edge: 2048 }, max_image_size: { longest_edge: 512 } }

/** LLaVA 1.5 leaves most of its decoder's sizes to the defaults. */
const llava = {
  model_type: "llava",
  image_token_index: 32_000,
  text_config: { model_type: "llama", max_position_embeddings: 4096, vocab_size: 32_064 },
  vision_config: {
    model_type: "clip_vision_model",
    hidden_size: 1024,
    image_size: 336,
    intermediate_size: 4096,
    num_attention_heads: 16,
    num_hidden_layers: 24,
    patch_size: 14,
  },
}

/** What the published file of Qwen2.5-VL-7B-Instruct says, whose decoder has no part of its own. */
const qwen = {
  model_type: "qwen2_5_vl",
  image_token_id: 151_655,
  hidden_size: 3584,
  intermediate_size: 18_944,
  max_position_embeddings: 128_000,
  num_attention_heads: 28,
  num_hidden_layers: 28,
  num_key_value_heads: 4,
  rope_scaling: { type: "mrope", mrope_section: [16, 24, 24] },
  rope_theta: 1_000_000,
  vocab_size: 152_064,
  vision_config: {
    depth: 32,
    hidden_act: "silu",
    hidden_size: 1280,
    intermediate_size: 3420,
    num_heads: 16,
    in_chans: 3,
    out_hidden_size: 3584,
    patch_size: 14,
    spatial_merge_size: 2,
    window_size: 112,
    fullatt_block_indexes: [7, 15, 23, 31],
  },
}
const flat = { max_pixels: 12_845_056, min_pixels: 3136 }

describe("how a chat model sees", () => {
  it("is read from published files", () => {
    expect(read(smolvlm, splitting)).toMatchObject({
      tower: { layers: 12, width: 768, feedForward: 3072, grid: 32 },
      connector: { type: "shuffle", scale: 4 },
      tokens: 64,
      width: 576,
      tiling: { longestEdge: 2048, edge: 512, splits: true, kernel: "lanczos3" },
      imageToken: 49_190,
    })
    expect(read(llava)).toMatchObject({
      tower: { family: "clip", layers: 24, grid: 24 },
      states: { layers: 23, isNormed: false, keepsClass: false },
      connector: { type: "mlp", activation: "gelu" },
      tokens: 576,
      width: 4096,
      imageToken: 32_000,
    })
    expect(folderConfig(folderOf(llava))).toMatchObject({
      architecture: "llama",
      layers: 32,
      width: 4096,
      feedForward: 11_008,
      vocabulary: 32_064,
    })
    expect(read({ model_type: "llama", hidden_size: 8 })).toBeUndefined()
    expect(read(qwen, flat)).toMatchObject({
      family: "qwen",
      tower: { layers: 32, width: 1280, window: 4, whole: [7, 15, 23, 31], merge: 2, frames: 2 },
      preprocessing: { resize: { mode: "squares", side: 28, least: 3136, most: 768 * 784 } },
      width: 3584,
      imageToken: 151_655,
    })
    expect(folderConfig(folderOf(qwen))).toMatchObject({
      architecture: "qwen2",
      layers: 28,
      sections: [16, 24, 24],
      contextTokens: 128_000,
    })
    const first = { ...qwen.vision_config, embed_dim: 1280, hidden_size: 3584, mlp_ratio: 4 }
    expect(
      read({
        ...qwen,
        model_type: "qwen2_vl",
        vision_config: { ...first, hidden_act: "quick_gelu" },
      }),
    ).toMatchObject({
      tower: { feedForward: 5120, window: undefined, activation: "quick_gelu" },
    })
  })

  it.each<[string, object, object | undefined, RegExp]>([
    ["a scale", { ...smolvlm, scale_factor: 5 }, splitting, /'scale_factor' 5 does not divide 32/],
    ["tiles", smolvlm, { max_image_size: { longest_edge: 364 } }, /364 pixels .* reads 512/],
    ["layers", { ...llava, vision_feature_layer: [-2, -3] }, undefined, /is not one number/],
    [
      "a layer",
      { ...llava, vision_feature_layer: -30 },
      undefined,
      /'vision_feature_layer' is -30/,
    ],
    [
      "heads of a tower",
      { ...qwen, vision_config: { ...qwen.vision_config, num_heads: 17 } },
      flat,
      /17 heads don't fit a width of 1280/,
    ],
    ["squares", qwen, { ...flat, patch_size: 16 }, /'patch_size' is 16, the model reads 14/],
    ["a strategy", { ...llava, vision_feature_select_strategy: "cls" }, undefined, /is 'cls'/],
    [
      "a tower",
      { ...llava, vision_config: { model_type: "pixtral" } },
      undefined,
      /its tower is a 'pixtral'/,
    ],
  ])("is refused with the file's name: %s", (_, config, preprocessor, message) => {
    expect(() => read(config, preprocessor)).toThrow(message)
    expect(() => read(config, preprocessor)).toThrow(/config\.json/)
  })

  it("is refused where the places of tokens don't fit the decoder's heads", () => {
    const rope_scaling = { type: "mrope", mrope_section: [16, 24, 25] }
    expect(() => folderConfig(folderOf({ ...qwen, rope_scaling }))).toThrow(
      /'mrope_section' is 16, 24, 25, of 64 pairs/,
    )
  })
})

describe("tiles", () => {
  const tiling = { longestEdge: 2048, edge: 512, splits: true, kernel: "lanczos3" } as const
  it.each([
    [640, 480, 3, 4],
    [480, 640, 4, 3],
    [1, 1, 4, 4],
    [65_535, 1, 1, 4],
    [1, 65_535, 4, 1],
  ])("of a picture of %i x %i are %i rows of %i", (width, height, rows, columns) => {
    expect(tilePlan(tiling, { width, height })).toMatchObject({ rows, columns })
  })

  it("are one where the picture is not divided", () => {
    const one = { rows: 0, columns: 0, whole: { width: 512, height: 512 } }
    expect(tilePlan({ ...tiling, splits: false }, { width: 9, height: 900 })).toMatchObject(one)
    const small = tilePlan({ ...tiling, longestEdge: 512 }, { width: 90, height: 90 })
    expect(small).toMatchObject(one)
  })
})
