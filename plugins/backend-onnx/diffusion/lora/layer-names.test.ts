import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { LayerNames } from "./layer-names.ts"
import { parseLoraName } from "./lora-names.ts"

const word = fc.constantFrom("attn", "to_q", "to", "q", "proj_in", "proj", "in", "0", "1", "ff")
const layerName = fc.array(word, { minLength: 1, maxLength: 4 }).map((words) => words.join("."))
const layers = fc.uniqueArray(layerName, { minLength: 1, maxLength: 12 })

describe("a layer is found by its name", () => {
  test("with dots always, with underscores where it is the only one of them", () => {
    fc.assert(
      fc.property(layers, (all) => {
        const names = new LayerNames(all)
        for (const name of all) {
          expect(names.find(name, false)).toEqual({ layers: [name], swapped: false })
          const flat = name.replaceAll(".", "_")
          const alike = all.filter((other) => other.replaceAll(".", "_") === flat)
          if (alike.length === 1) expect(names.find(flat, true)?.layers).toEqual([name])
          else expect(() => names.find(flat, true)).toThrow(`its layer '${flat}' could be '`)
        }
      }),
    )
  })

  test("never by one that no layer has", () => {
    fc.assert(
      fc.property(layers, layerName, (all, other) => {
        const names = new LayerNames(all)
        if (!all.includes(other)) expect(names.find(other, false)).toBeUndefined()
      }),
    )
  })

  test("of the model's makers, as the layers of diffusers that it is made of", () => {
    const names = new LayerNames(
      ["to_q", "to_k", "to_v"].map((part) => `transformer_blocks.7.attn.${part}`),
    )
    const wanted = {
      layers: ["to_q", "to_k", "to_v"].map((part) => `transformer_blocks.7.attn.${part}`),
      swapped: false,
    }
    expect(names.find("double_blocks.7.img_attn.qkv", false)).toEqual(wanted)
    expect(names.find("joint_blocks_7_x_block_attn_qkv", true)).toEqual(wanted)
    expect(names.find("double_blocks.7.txt_attn.qkv", false)).toBeUndefined()
    expect(names.find("double_blocks.8.img_attn.qkv", false)).toBeUndefined()
  })
})

const dotted = (layer: string, side: "a" | "b" | "alpha", of = "denoiser") => ({
  of,
  layer,
  underscored: false,
  side,
})

test.each([
  ["transformer.blocks.0.attn.to_q.lora_A.weight", dotted("blocks.0.attn.to_q", "a")],
  ["transformer.blocks.0.attn.to_q.lora_B.default.weight", dotted("blocks.0.attn.to_q", "b")],
  ["unet.mid_block.ff.net.2.lora.down.weight", dotted("mid_block.ff.net.2", "a")],
  ["unet.mid.attn1.processor.to_out_lora.up.weight", dotted("mid.attn1.to_out.0", "b")],
  ["base_model.model.proj_out.lora_A.weight", dotted("proj_out", "a")],
  ["base_model.model.transformer.proj_out.lora_A.weight", dotted("proj_out", "a")],
  [
    "diffusion_model.double_blocks.0.img_attn.qkv.alpha",
    dotted("double_blocks.0.img_attn.qkv", "alpha"),
  ],
  ["transformer_blocks.0.ff.lora_down.weight", dotted("transformer_blocks.0.ff", "a")],
  ["text_encoder_2.layers.0.fc1.lora_A.weight", dotted("layers.0.fc1", "a", "text_encoder_2")],
  [
    "lora_unet_down_blocks_0_proj_in.lora_down.weight",
    { of: "denoiser", layer: "down_blocks_0_proj_in", underscored: true, side: "a" },
  ],
  [
    "lora_te1_text_model_encoder_layers_0_mlp_fc1.alpha",
    {
      of: "text_encoder",
      layer: "text_model_encoder_layers_0_mlp_fc1",
      underscored: true,
      side: "alpha",
    },
  ],
  ["lora_unet_mid_block.hada_w1_a", undefined],
  ["lora_unet_mid_block.lora_mid.weight", undefined],
  ["lora_unet_mid_block.dora_scale", undefined],
  ["lora_prior_mid_block.lora_up.weight", undefined],
  ["conv_in.weight", undefined],
  ["conv_in.bias", undefined],
  ["", undefined],
])("reads the name %s", (tensor, wanted) => {
  expect(parseLoraName(tensor)).toEqual(wanted)
})

test("any name is read or refused", () => {
  fc.assert(
    fc.property(fc.string(), (name) => {
      parseLoraName(name)
      parseLoraName(`${name}.lora_A.weight`)
      parseLoraName(`lora_unet_${name}.alpha`)
    }),
  )
})
