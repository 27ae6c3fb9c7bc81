import type { Value } from "../../onnx/graph-builder.ts"
import {
  conv2d,
  enlarged,
  groupNorm,
  mapOf,
  resnet,
  shapeOf,
  tokensOf,
} from "../graph/convolution.ts"
import { attention, linear, type PartBuilding, silu } from "../graph/layers.ts"
import { scaled, unscaled } from "./latent-scale.ts"
import { channelsOf, type VaeConfig } from "./vae-config.ts"

/** Increment it whenever graphs built by earlier versions must be built again. */
export const vaeGraphVersion = 1

const epsilon = 1e-6

/** A value and the number of its channels. */
interface Channels {
  readonly value: Value
  readonly channels: number
}

const block = (
  building: PartBuilding,
  { groups }: VaeConfig,
  name: string,
  { value, channels }: Channels,
  outputs = channels,
): Channels => ({
  value: resnet(building, name, value, { inputs: channels, outputs, groups, epsilon }),
  channels: outputs,
})

const oldNames: Readonly<Record<string, string>> = {
  to_q: "query",
  to_k: "key",
  to_v: "value",
  "to_out.0": "proj_attn",
}

/** Attention of all positions among each other, by one head. */
const attended = (
  building: PartBuilding,
  { groups }: VaeConfig,
  name: string,
  { value, channels }: Channels,
): Channels => {
  const { graph, file } = building
  const normed = groupNorm(building, `${name}.group_norm`, value, { channels, groups, epsilon })
  const tokens = tokensOf(building, normed, channels)
  const size = { rows: channels, columns: channels }
  const layer = (part: string, x: Value) => {
    const old = `${name}.${oldNames[part]}`
    return linear(building, file.has(`${old}.weight`) ? old : `${name}.${part}`, x, size)
  }
  const [q, k, v] = ["to_q", "to_k", "to_v"].map((part) => layer(part, tokens))
  const out = layer("to_out.0", attention(building, [q!, k!, v!], 1))
  return { value: graph.node("Add", [value, mapOf(building, out, value)]), channels }
}

const middle = (building: PartBuilding, config: VaeConfig, name: string, x: Channels): Channels => {
  const first = block(building, config, `${name}.resnets.0`, x)
  const seen = config.hasAttention
    ? attended(building, config, `${name}.attentions.0`, first)
    : first
  return block(building, config, `${name}.resnets.1`, seen)
}

const last = (
  building: PartBuilding,
  { groups }: VaeConfig,
  name: string,
  { value, channels }: Channels,
  outputs: number,
): Value => {
  const normed = groupNorm(building, `${name}.conv_norm_out`, value, { channels, groups, epsilon })
  return conv2d(building, `${name}.conv_out`, silu(building, normed), {
    inputs: channels,
    outputs,
  })
}

const doubled = (building: PartBuilding, x: Value): Value => {
  const { graph } = building
  return enlarged(building, x, graph.node("Mul", [shapeOf(building, x, 2), graph.ints([2, 2])]))
}

/**
 * The decoder of an autoencoder (Kingma and Welling, arXiv 1312.6114; Rombach et al., arXiv
 * 2112.10752). In: `latents [1,C,H,W]` as a denoiser makes them. Out: `pixels [1,3,h,w]` from about
 * -1 to 1.
 */
export const buildVaeDecoder = (
  building: PartBuilding,
  config: VaeConfig,
  progress: (detail: string) => void = () => {},
): void => {
  const { graph } = building
  const { latents, layers, hasPostQuant } = config
  const levels = config.decoderChannels.toReversed()
  const input = graph.input("latents", "float", [1, channelsOf(config), "H", "W"])
  const own = unscaled(building, config, input)
  const sizes = { inputs: latents, outputs: latents, kernel: 1 }
  const z = hasPostQuant ? conv2d(building, "post_quant_conv", own, sizes) : own
  const start = conv2d(building, "decoder.conv_in", z, { inputs: latents, outputs: levels[0]! })
  let x = middle(building, config, "decoder.mid_block", { value: start, channels: levels[0]! })
  for (const [level, channels] of levels.entries()) {
    progress(`level ${level + 1} of ${levels.length}`)
    const name = `decoder.up_blocks.${level}`
    for (let layer = 0; layer <= layers; layer++)
      x = block(building, config, `${name}.resnets.${layer}`, x, channels)
    if (level === levels.length - 1) continue
    const value = conv2d(building, `${name}.upsamplers.0.conv`, doubled(building, x.value), {
      inputs: channels,
      outputs: channels,
    })
    x = { value, channels }
  }
  graph.output("pixels", last(building, config, "decoder", x, 3), "float", [1, 3, "h", "w"])
}

/**
 * The encoder of an autoencoder. In: `pixels [1,3,h,w]` from -1 to 1, whose edges the latents divide.
 * Out: `latents [1,C,H,W]`, the mean of their distribution, as a denoiser reads them.
 */
export const buildVaeEncoder = (
  building: PartBuilding,
  config: VaeConfig,
  progress: (detail: string) => void = () => {},
): void => {
  const { graph } = building
  const { encoderChannels: levels, latents, layers, hasQuant } = config
  const pixels = graph.input("pixels", "float", [1, 3, "h", "w"])
  const start = conv2d(building, "encoder.conv_in", pixels, { inputs: 3, outputs: levels[0]! })
  let x: Channels = { value: start, channels: levels[0]! }
  for (const [level, channels] of levels.entries()) {
    progress(`level ${level + 1} of ${levels.length}`)
    const name = `encoder.down_blocks.${level}`
    for (let layer = 0; layer < layers; layer++)
      x = block(building, config, `${name}.resnets.${layer}`, x, channels)
    if (level === levels.length - 1) continue
    const half = { inputs: channels, outputs: channels, stride: 2, pads: [0, 0, 1, 1] } as const
    x = { value: conv2d(building, `${name}.downsamplers.0.conv`, x.value, half), channels }
  }
  const mid = middle(building, config, "encoder.mid_block", x)
  const moments = last(building, config, "encoder", mid, 2 * latents)
  const sizes = { inputs: 2 * latents, outputs: 2 * latents, kernel: 1 }
  const both = hasQuant ? conv2d(building, "quant_conv", moments, sizes) : moments
  const mean = graph.node("Slice", [both, graph.ints([0]), graph.ints([latents]), graph.ints([1])])
  const found = scaled(building, config, mean)
  graph.output("latents", found, "float", [1, channelsOf(config), "H", "W"])
}
