import { expect, test } from "vitest"
import type { Metadata } from "../../weights/gguf-metadata.ts"
import { partConfig } from "../transformers/testing/run-part.ts"
import { unetConfig } from "./unet-config.ts"

const changed = (key: string, value: unknown): Metadata =>
  new Map([...partConfig("sd", "unet"), [key, value]]) as Metadata

test("reads the levels of a UNet, with the defaults of its class", () => {
  const bare = new Map<string, unknown>([
    ["block_out_channels", [320, 640]],
    ["cross_attention_dim", 768],
  ]) as Metadata
  const level = { layers: 2, heads: 8, depth: 1 }
  expect(unetConfig(bare).levels).toEqual([
    { ...level, channels: 320, isSeenDown: true, isSeenUp: true },
    { ...level, channels: 640, isSeenDown: false, isSeenUp: false },
  ])
})

test.each([
  ["addition_embed_type", "text_time"],
  ["class_embed_type", "timestep"],
  ["down_block_types", ["AttnDownBlock2D", "DownBlock2D", "DownBlock2D"]],
  ["mid_block_type", "UNetMidBlock2D"],
  ["only_cross_attention", [true, false, false]],
  ["block_out_channels", [8, 16, 18]],
  ["block_out_channels", []],
  ["attention_head_dim", [3, 2, 2]],
  ["layers_per_block", [1, 1]],
  ["up_block_types", ["UpBlock2D"]],
])("refuses %s %j by name", (key, value) => {
  expect(() => unetConfig(changed(key, value))).toThrow(/'|heads don't fit/)
})
