import {
  countIn,
  countOr,
  type Metadata,
  numberOr,
  numbersIn,
  present,
  textsIn,
} from "../../weights/gguf-metadata.ts"
import { Damaged, Unsupported } from "../../weights/model-file-error.ts"
import { channelsIn, onlyBlocks } from "../graph/config.ts"

/** A level of a UNet: the blocks at one size of its maps. */
export interface UnetLevel {
  readonly channels: number
  /** Residual blocks on the way down; there is one more on the way up. */
  readonly layers: number
  readonly heads: number
  /** Layers of each transformer. */
  readonly depth: number
  /** Whether a transformer follows each residual block, on the way down and up. */
  readonly isSeenDown: boolean
  readonly isSeenUp: boolean
}

/** Sizes of a UNet2DConditionModel. */
export interface UnetConfig {
  readonly inputs: number
  readonly outputs: number
  /** From the largest maps to the smallest. */
  readonly levels: readonly UnetLevel[]
  readonly hasMiddle: boolean
  readonly groups: number
  readonly epsilon: number
  readonly contextWidth: number
  /** Length of the embedded guidance scale, for distilled models that take it. */
  readonly guidance?: number
}

/** Keys of what changes the graph, with the only values that it is built for. */
const fixed: Readonly<Record<string, readonly unknown[]>> = {
  act_fn: ["silu", "swish"],
  addition_embed_type: [],
  attention_type: ["default"],
  center_input_sample: [false],
  class_embed_type: [],
  conv_in_kernel: [3],
  conv_out_kernel: [3],
  cross_attention_norm: [],
  downsample_padding: [1],
  dual_cross_attention: [false],
  encoder_hid_dim_type: [],
  flip_sin_to_cos: [true],
  freq_shift: [0],
  mid_block_only_cross_attention: [false],
  mid_block_scale_factor: [1],
  num_attention_heads: [],
  num_class_embeds: [],
  only_cross_attention: [false],
  resnet_out_scale_factor: [1],
  resnet_skip_time_act: [false],
  resnet_time_scale_shift: ["default"],
  reverse_transformer_layers_per_block: [],
  time_embedding_act_fn: [],
  time_embedding_type: ["positional"],
  timestep_post_act: [],
}

const checkFixed = (json: Metadata): void => {
  for (const [key, known] of Object.entries(fixed)) {
    const value: unknown = json.get(key) ?? undefined
    const all: readonly unknown[] = Array.isArray(value) ? value : [value]
    if (value !== undefined && !all.every((item) => known.includes(item)))
      throw new Unsupported(
        `'${key}' is ${JSON.stringify(value)}, which this backend doesn't build`,
      )
  }
}

/** A number, or one for each level. */
const perLevel = (json: Metadata, key: string, levels: number, byDefault: number) => {
  if (!Array.isArray(json.get(key)))
    return new Array<number>(levels).fill(countOr(json, key, 1024, byDefault))
  const values = numbersIn(json, key)
  const isCount = (value: number) => Number.isInteger(value) && value > 0 && value <= 1024
  if (values.length !== levels || !values.every(isCount))
    throw new Damaged(`'${key}' is no list of ${levels} counts`)
  return values
}

/** Which of the blocks, from the largest maps to the smallest, have transformers. */
const seenBlocks = (json: Metadata, way: "Down" | "Up", levels: number): readonly boolean[] => {
  const key = `${way.toLowerCase()}_block_types`
  const seen = `CrossAttn${way}Block2D`
  const types = present(json, key)
    ? textsIn(json, key)
    : new Array<string>(levels - 1)
        .fill(seen)
        .toSpliced(way === "Up" ? 0 : levels, 0, `${way}Block2D`)
  onlyBlocks(json, key, [seen, `${way}Block2D`])
  if (types.length !== levels)
    throw new Damaged(`'${key}' has ${types.length} blocks, and there are ${levels} levels`)
  const all = types.map((type) => type === seen)
  return way === "Up" ? all.toReversed() : all
}

const hasMiddle = (json: Metadata): boolean => {
  const type: unknown = json.get("mid_block_type")
  if (type === null) return false
  if ((type ?? "UNetMidBlock2DCrossAttn") === "UNetMidBlock2DCrossAttn") return true
  throw new Unsupported(`'mid_block_type' is '${String(type)}', which this backend doesn't build`)
}

/** Reads the config.json of a UNet; throws `Damaged` or `Unsupported`. */
export const unetConfig = (json: Metadata): UnetConfig => {
  checkFixed(json)
  const groups = countOr(json, "norm_num_groups", 1024, 32)
  const channels = channelsIn(json, "block_out_channels", groups)
  const count = channels.length
  // the file calls the number of heads so, and always has
  const heads = perLevel(json, "attention_head_dim", count, 8)
  const layers = perLevel(json, "layers_per_block", count, 2)
  const depths = perLevel(json, "transformer_layers_per_block", count, 1)
  const [down, up] = [seenBlocks(json, "Down", count), seenBlocks(json, "Up", count)]
  const levels = channels.map((size, level): UnetLevel => {
    if (size % heads[level]!) throw new Damaged(`${heads[level]} heads don't fit ${size} channels`)
    return {
      channels: size,
      layers: layers[level]!,
      heads: heads[level]!,
      depth: depths[level]!,
      isSeenDown: down[level]!,
      isSeenUp: up[level]!,
    }
  })
  const inputs = countOr(json, "in_channels", 1024, 4)
  return {
    inputs,
    outputs: countOr(json, "out_channels", 1024, 4),
    levels,
    hasMiddle: hasMiddle(json),
    groups,
    epsilon: numberOr(json, "norm_eps", 1e-5),
    contextWidth: countIn(json, "cross_attention_dim", 65_536),
    ...(present(json, "time_cond_proj_dim") && {
      guidance: countIn(json, "time_cond_proj_dim", 65_536),
    }),
  }
}
