import "reflect-metadata/lite"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Schema } from "effect"
import { container as root } from "tsyringe"
import { expect, it } from "vitest"
import { resolveAll, Tokens } from "../../core/tokens.ts"
import { plugin } from "./plugin.ts"

const offered = (settings: object) => {
  const container = root.createChildContainer()
  plugin.create(Schema.decodeUnknownSync(plugin.settings)(settings) as never).register?.(container)
  return resolveAll(container, Tokens.adapters)
}
const weights = fileURLToPath(offered({})[0]!.sources[0]!.url)
const json = (name: string) => JSON.parse(readFileSync(join(weights, name), "utf8"))

it("brings the tower for svc-embed, or for the model that the settings name", () => {
  expect(weights).toBe(join(import.meta.dirname, "weights/"))
  expect(offered({})).toEqual([
    { model: "svc-embed", id: "images", sources: [{ url: `file:${weights}` }] },
  ])
  expect(offered({ model: "minilm" })).toMatchObject([{ model: "minilm", id: "images" }])
})

/** Name to shape, by the header of a safetensors file. */
const shapesIn = (file: Buffer) => {
  const { __metadata__, ...tensors } = JSON.parse(
    file.subarray(8, 8 + Number(file.readBigUInt64LE())).toString(),
  ) as Record<string, { readonly dtype: string; readonly shape: readonly number[] }>
  expect(new Set(Object.values(tensors).map(({ dtype }) => dtype))).toEqual(new Set(["F16"]))
  return Object.fromEntries(Object.entries(tensors).map(([name, { shape }]) => [name, shape]))
}

it("has the weights that config.json says, of the text encoder's width", () => {
  const config = json("config.json")
  expect(config).toMatchObject({ model_type: "efficientnet_lite", projection_dim: 384 })
  expect(json("preprocessor_config.json").pad_size).toEqual({
    height: config.image_size,
    width: config.image_size,
  })
  const expected: Record<string, readonly number[]> = {}
  const layer = (name: string, ...shape: readonly number[]) => {
    expected[`${name}.weight`] = shape
    expected[`${name}.bias`] = shape.slice(0, 1)
  }
  layer("stem", config.stem_channels, config.num_channels, 3, 3)
  for (const [index, block] of config.blocks.entries()) {
    const [name, wide] = [`blocks.${index}`, block.in_channels * block.expand_ratio]
    if (block.expand_ratio > 1) layer(`${name}.expand`, wide, block.in_channels, 1, 1)
    layer(`${name}.depthwise`, wide, 1, block.kernel_size, block.kernel_size)
    layer(`${name}.project`, block.out_channels, wide, 1, 1)
  }
  layer("head", config.head_channels, config.blocks.at(-1).out_channels, 1, 1)
  layer("projection", config.projection_dim, config.head_channels)
  expect(shapesIn(readFileSync(join(weights, "model.safetensors")))).toEqual(expected)
})
