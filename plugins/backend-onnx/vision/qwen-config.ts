import { decoderPart } from "../architectures/folder-config.ts"
import {
  type ImagePreprocessing,
  patchPreprocessing,
} from "../architectures/image-preprocessing.ts"
import { type Activation, activationNamed } from "../encoding/encoder-parts.ts"
import { towerSection } from "../encoding/tower-layers.ts"
import {
  countOr,
  type Metadata,
  numberOr,
  numbersIn,
  present,
  textOr,
} from "../weights/gguf-metadata.ts"
import { Damaged, Unsupported } from "../weights/model-file-error.ts"

/** The tower of Qwen2-VL, or of Qwen2.5-VL: it reads pictures in their own shape. */
export interface QwenTower {
  readonly layers: number
  readonly width: number
  readonly heads: number
  readonly feedForward: number
  /** Pixels of a side of the squares that it reads. */
  readonly patch: number
  /** Frames of a square; the one of a picture stands for all. */
  readonly frames: number
  /** Squares on a side of those that become one token. */
  readonly merge: number
  /** The activation of its feed-forward parts; undefined: they are gated, and norms have no means. */
  readonly activation: Activation | undefined
  /** Tokens on a side of the windows within which most layers attend; undefined: all see all. */
  readonly window: number | undefined
  /** The layers that see all. */
  readonly whole: readonly number[]
  readonly rotaryBase: number
}

/** How a model of the family sees. */
export interface QwenSight {
  readonly family: "qwen"
  readonly tower: QwenTower
  readonly width: number
  readonly preprocessing: ImagePreprocessing
  readonly imageToken: number
}

const limits = { layers: 512, width: 65_536, heads: 1024, feedForward: 1_048_576, patch: 64 }

const windowIn = (section: Metadata, patch: number, merge: number): number => {
  const pixels = countOr(section, "window_size", 4096, 112)
  const tokens = Math.floor(Math.floor(pixels / merge) / patch)
  if (tokens < 1) throw new Damaged(`'window_size' is ${pixels}, less than a token`)
  return tokens
}

const towerIn = (section: Metadata, isSecond: boolean): QwenTower => {
  const width = countOr(section, isSecond ? "hidden_size" : "embed_dim", limits.width, 1280)
  const heads = countOr(section, "num_heads", limits.heads, 16)
  if (width % (4 * heads)) throw new Damaged(`${heads} heads don't fit a width of ${width}`)
  if (countOr(section, "in_channels", 4, countOr(section, "in_chans", 4, 3)) !== 3)
    throw new Unsupported("'in_channels' is not 3: this backend reads pictures as RGB")
  const patch = countOr(section, "patch_size", limits.patch, 14)
  const merge = countOr(section, "spatial_merge_size", 8, 2)
  const named = textOr(section, "hidden_act", isSecond ? "silu" : "quick_gelu")
  if (isSecond && named !== "silu")
    throw new Unsupported(`'hidden_act' of its tower is '${named}'; this backend runs 'silu'`)
  const rotary = section.get("rope_parameters") as unknown as {
    readonly rope_theta?: number
  } | null
  return {
    layers: countOr(section, "depth", limits.layers, 32),
    width,
    heads,
    feedForward: isSecond
      ? countOr(section, "intermediate_size", limits.feedForward, 3420)
      : Math.floor(width * numberOr(section, "mlp_ratio", 4)),
    patch,
    frames: countOr(section, "temporal_patch_size", 8, 2),
    merge,
    activation: isSecond ? undefined : activationNamed(named),
    window: isSecond ? windowIn(section, patch, merge) : undefined,
    whole: !isSecond
      ? []
      : present(section, "fullatt_block_indexes")
        ? numbersIn(section, "fullatt_block_indexes")
        : [7, 15, 23, 31],
    rotaryBase: rotary?.rope_theta ?? 10_000,
  }
}

/** Qwen2-VL (Wang et al., arXiv 2409.12191) and Qwen2.5-VL (Bai et al., arXiv 2502.13923). */
export const qwenSight = (json: Metadata, folder: string): QwenSight => {
  const isSecond = json.get("model_type") === "qwen2_5_vl"
  const tower = towerIn(towerSection(json, "vision_config"), isSecond)
  return {
    family: "qwen",
    tower,
    width: countOr(decoderPart(json), "hidden_size", limits.width, 8192),
    preprocessing: patchPreprocessing(folder, tower),
    imageToken: countOr(json, "image_token_id", 2 ** 24, 151_655),
  }
}
