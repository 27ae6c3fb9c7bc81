import { product } from "../../encoding/encoder-parts.ts"
import type { Value } from "../../onnx/graph-builder.ts"
import { conv2d, enlarged, groupNorm, type Resnet, resnet, shapeOf } from "../graph/convolution.ts"
import { linear, type PartBuilding, silu, sinusoids } from "../graph/layers.ts"
import { spatialTransformer } from "./spatial-transformer.ts"
import type { UnetConfig, UnetLevel } from "./unet-config.ts"

/** Increment it whenever graphs built by earlier versions must be built again. */
export const unetGraphVersion = 2

/** A map and the number of its channels. */
interface Channels {
  readonly value: Value
  readonly channels: number
}

/** What all blocks read. */
interface Shared {
  readonly building: PartBuilding
  readonly config: UnetConfig
  readonly context: Value
  readonly time: NonNullable<Resnet["time"]>
}

const block = (
  { building, config: { groups, epsilon }, time }: Shared,
  name: string,
  { value, channels }: Channels,
  outputs: number,
): Channels => {
  const sizes = { inputs: channels, outputs, groups, epsilon, time }
  return { value: resnet(building, name, value, sizes), channels: outputs }
}

const seen = (
  { building, config, context }: Shared,
  name: string,
  { value, channels }: Channels,
  { heads, depth }: UnetLevel,
): Channels => {
  const { groups, contextWidth } = config
  const sizes = { channels, heads, depth, groups, contextWidth }
  return { value: spatialTransformer(building, name, value, context, sizes), channels }
}

/** The way down; returns all maps that the way up reads, and the last. */
const down = (shared: Shared, start: Channels, progress: (detail: string) => void) => {
  const { building, config } = shared
  const maps = [start]
  let x = start
  for (const [index, level] of config.levels.entries()) {
    progress(`level ${index + 1} of ${config.levels.length}`)
    const name = `down_blocks.${index}`
    const { channels } = level
    for (let layer = 0; layer < level.layers; layer++) {
      x = block(shared, `${name}.resnets.${layer}`, x, channels)
      if (level.isSeenDown) x = seen(shared, `${name}.attentions.${layer}`, x, level)
      maps.push(x)
    }
    if (index === config.levels.length - 1) continue
    const half = { inputs: channels, outputs: channels, stride: 2 }
    x = { value: conv2d(building, `${name}.downsamplers.0.conv`, x.value, half), channels }
    maps.push(x)
  }
  return { x, maps }
}

const middle = (shared: Shared, x: Channels): Channels => {
  const level = shared.config.levels.at(-1)!
  const first = block(shared, "mid_block.resnets.0", x, level.channels)
  const between = seen(shared, "mid_block.attentions.0", first, level)
  return block(shared, "mid_block.resnets.1", between, level.channels)
}

const up = (shared: Shared, start: Channels, maps: Channels[]): Channels => {
  const { building, config } = shared
  let x = start
  for (const [index, level] of config.levels.toReversed().entries()) {
    const name = `up_blocks.${index}`
    const { channels } = level
    for (let layer = 0; layer <= level.layers; layer++) {
      const known = maps.pop()!
      const both = {
        value: building.graph.concat([x.value, known.value], 1),
        channels: x.channels + known.channels,
      }
      x = block(shared, `${name}.resnets.${layer}`, both, channels)
      if (level.isSeenUp) x = seen(shared, `${name}.attentions.${layer}`, x, level)
    }
    if (index === config.levels.length - 1) continue
    // halving rounds up, so that the size is that of the next map
    const large = enlarged(building, x.value, shapeOf(building, maps.at(-1)!.value, 2))
    const sizes = { inputs: channels, outputs: channels }
    x = { value: conv2d(building, `${name}.upsamplers.0.conv`, large, sizes), channels }
  }
  return x
}

/** The embedding of the timestep, and of the guidance scale where the model takes it. */
const timeOf = (building: PartBuilding, { levels, guidance }: UnetConfig): Shared["time"] => {
  const { graph } = building
  const { channels } = levels[0]!
  const width = 4 * channels
  const waves = sinusoids(building, graph.input("timestep", "float", [1]), channels)
  const withScale = () => {
    const scale = graph.input("guidance", "float", [1, guidance!])
    const row = graph.node("Unsqueeze", [scale, graph.ints([1])])
    const sizes = { rows: channels, columns: guidance! }
    return graph.node("Add", [waves, product(building, "time_embedding.cond_proj", row, sizes)])
  }
  const input = guidance === undefined ? waves : withScale()
  const hidden = linear(building, "time_embedding.linear_1", input, {
    rows: width,
    columns: channels,
  })
  const square = { rows: width, columns: width }
  const embedding = linear(building, "time_embedding.linear_2", silu(building, hidden), square)
  return { value: silu(building, embedding), width }
}

/**
 * The denoiser of Stable Diffusion 1 and 2 (Rombach et al., arXiv 2112.10752), and of those distilled
 * from it. In: `latents [1,C,H,W]`, `context [1,T,contextWidth]`, `timestep [1]` from 0 to 1,000, and
 * `guidance [1,G]`, the embedded scale, for models that take it. Out: `output [1,C,H,W]`.
 */
export const buildUnet = (
  building: PartBuilding,
  config: UnetConfig,
  progress: (detail: string) => void = () => {},
): void => {
  const { graph } = building
  const { inputs, outputs, levels, groups, epsilon, contextWidth } = config
  const { channels } = levels[0]!
  const latents = graph.input("latents", "float", [1, inputs, "H", "W"])
  const context = graph.input("context", "float", [1, "T", contextWidth])
  const shared = { building, config, context, time: timeOf(building, config) }
  const first = conv2d(building, "conv_in", latents, { inputs, outputs: channels })
  const { x, maps } = down(shared, { value: first, channels }, progress)
  const lowest = config.hasMiddle ? middle(shared, x) : x
  const { value } = up(shared, lowest, maps)
  const normed = groupNorm(building, "conv_norm_out", value, { channels, groups, epsilon })
  const output = conv2d(building, "conv_out", silu(building, normed), {
    inputs: channels,
    outputs,
  })
  graph.output("output", output, "float", [1, outputs, "H", "W"])
}
