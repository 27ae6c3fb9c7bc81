import { statSync } from "node:fs"
import { configFile, decoderPart, readsGrids, readsImages } from "../architectures/folder-config.ts"
import {
  type ImagePreprocessing,
  imagePreprocessing,
} from "../architectures/image-preprocessing.ts"
import { type ImageTiling, imageTiling } from "../architectures/image-tiling.ts"
import { type Activation, activationNamed } from "../encoding/encoder-parts.ts"
import { towerSection } from "../encoding/tower-layers.ts"
import { countOr, type Metadata, present, textOr } from "../weights/gguf-metadata.ts"
import { readJson } from "../weights/json-file.ts"
import { Damaged, explaining, Unsupported } from "../weights/model-file-error.ts"
import { mmprojConfig } from "./mmproj-file.ts"
import { type QwenSight, qwenSight } from "./qwen-config.ts"
import type { StatesRead } from "./transformer-graph.ts"
import {
  clipPreprocessing,
  type EfficientNetConfig,
  edgeIn,
  efficientNet,
  gridOf,
  stretched,
  type TransformerConfig,
  transformer,
} from "./vision-config.ts"

/** How states of a tower become what the decoder reads. */
export type Connector =
  /** Squares of `scale` x `scale` states side by side are one, through a linear layer. */
  | { readonly type: "shuffle"; readonly scale: number }
  /** Each state through two linear layers. */
  | { readonly type: "mlp"; readonly activation: Activation }

/** An EfficientNet-Lite whose features are read square by square, and not as their mean. */
export interface SquaredEfficientNet extends EfficientNetConfig {
  /** Squares on a side of the picture. */
  readonly grid: number
  /** Numbers of a state. */
  readonly width: number
}

/** How a chat model sees whose tower reads pictures of one size, and what connects it to the decoder. */
export interface TiledSight {
  readonly family: "idefics3" | "llava"
  readonly tower: TransformerConfig | SquaredEfficientNet
  /** Which states of a transformer are read. */
  readonly states: StatesRead
  readonly connector: Connector
  /** The width of the decoder. */
  readonly width: number
  /** Tokens that a tile is for the decoder. */
  readonly tokens: number
  readonly preprocessing: ImagePreprocessing
  readonly tiling?: ImageTiling
  /** The token that the chat template of the folder writes for an image; a GGUF file has none. */
  readonly imageToken?: number
}

export type SightConfig = TiledSight | QwenSight

const vocabulary = 2 ** 24

/** Defaults of the configuration class of transformers. */
const ideficsVision: Metadata = new Map<string, number>([
  ["hidden_size", 1152],
  ["intermediate_size", 3072],
  ["num_attention_heads", 16],
  ["patch_size", 32],
])

/** Idefics3 (Laurençon et al., arXiv 2408.12637), and SmolVLM, which is one. */
const idefics3 = (json: Metadata, folder: string, width: number): TiledSight => {
  const section = new Map([...ideficsVision, ...towerSection(json, "vision_config")])
  const edge = edgeIn(section, 224)
  const tower = transformer("siglip", section, gridOf(section, edge, 32))
  const scale = countOr(json, "scale_factor", 16, 2)
  if (tower.grid % scale)
    throw new Damaged(`'scale_factor' ${scale} does not divide ${tower.grid} squares`)
  const { tiling, preprocessing } = imageTiling(folder, edge)
  if (tiling.edge !== edge)
    throw new Damaged(`its tiles have ${tiling.edge} pixels on a side, the model reads ${edge}`)
  return {
    family: "idefics3",
    tower,
    states: { layers: tower.layers, isNormed: true, keepsClass: false },
    connector: { type: "shuffle", scale },
    width,
    tokens: (tower.grid / scale) ** 2,
    preprocessing,
    tiling,
    imageToken: countOr(json, "image_token_id", vocabulary, 128_257),
  }
}

/** The number of layers that are run: the file names one from the start, or from the end. */
const layersRead = (json: Metadata, layers: number): number => {
  const value: unknown = json.get("vision_feature_layer") ?? -2
  if (typeof value !== "number" || !Number.isInteger(value))
    throw new Unsupported("'vision_feature_layer' is not one number")
  const read = value < 0 ? layers + 1 + value : value
  if (read < 1 || read > layers) throw new Damaged(`'vision_feature_layer' is ${value}`)
  return read
}

const projectorOf = (json: Metadata): Connector => ({
  type: "mlp",
  activation: activationNamed(textOr(json, "projector_hidden_act", "gelu")),
})

/** LLaVA's projector behind an EfficientNet-Lite, which is no family of transformers. */
const convolved = (json: Metadata, folder: string, width: number): TiledSight => {
  const section = towerSection(json, "vision_config")
  const edge = edgeIn(section, 224)
  const net = efficientNet(section)
  const halved = (side: number, stride: number) => Math.ceil(side / stride)
  const grid = net.blocks.reduce((side, { stride }) => halved(side, stride), halved(edge, 2))
  return {
    family: "llava",
    tower: { ...net, grid, width: net.head },
    states: { layers: net.blocks.length, isNormed: false, keepsClass: false },
    connector: projectorOf(json),
    width,
    tokens: grid ** 2,
    preprocessing: imagePreprocessing(folder, edge, stretched(edge)),
  }
}

/** LLaVA 1.5 (Liu et al., arXiv 2310.03744), with a tower of CLIP or SigLIP. */
const llava = (json: Metadata, folder: string, width: number): TiledSight => {
  const section = towerSection(json, "vision_config")
  const type = textOr(section, "model_type", "clip_vision_model")
  if (type === "efficientnet_lite") return convolved(json, folder, width)
  const family = type === "clip_vision_model" ? "clip" : "siglip"
  if (family === "siglip" && type !== "siglip_vision_model")
    throw new Unsupported(`its tower is a '${type}', which this backend can't read images with`)
  const patch = family === "clip" ? 32 : 16
  const edge = edgeIn(section, 224)
  const tower = transformer(family, section, gridOf(section, edge, patch))
  const strategy = textOr(json, "vision_feature_select_strategy", "default")
  if (strategy !== "default" && strategy !== "full")
    throw new Unsupported(`'vision_feature_select_strategy' is '${strategy}'`)
  // transformers drops the first state of any tower, whether it is a class or not
  if (strategy === "default" && family === "siglip")
    throw new Unsupported("'vision_feature_select_strategy' drops a square of the picture")
  const keepsClass = family === "clip" && strategy === "full"
  const defaults = family === "clip" ? clipPreprocessing(edge) : stretched(edge)
  const index = json.has("image_token_index") ? "image_token_index" : "image_token_id"
  return {
    family: "llava",
    tower,
    states: { layers: layersRead(json, tower.layers), isNormed: false, keepsClass },
    connector: projectorOf(json),
    width,
    tokens: tower.grid ** 2 + Number(keepsClass),
    preprocessing: imagePreprocessing(folder, edge, defaults),
    imageToken: countOr(json, index, vocabulary, 32_000),
  }
}

/**
 * Reads how the chat model of a folder sees, or by a GGUF file of a tower; undefined: it reads texts
 * only. The width is what config.json says of the decoder. Throws `ModelFileError`.
 */
export const sightConfig = (path: string): SightConfig | undefined => {
  if (statSync(path, { throwIfNoEntry: false })?.isFile()) return mmprojConfig(path)
  const folder = path
  const json = readJson(folder, configFile)
  if (!readsImages(json)) return undefined
  return explaining(`${folder}/${configFile}`, () => {
    if (readsGrids(json)) return qwenSight(json, folder)
    // the decoder of a tower that stands alone is another file
    const width = present(json, "text_config")
      ? countOr(decoderPart(json), "hidden_size", 65_536, 4096)
      : 4096
    return (json.get("model_type") === "llava" ? llava : idefics3)(json, folder, width)
  })
}
