import { modelNameIn } from "../architectures/folder-json.ts"
import {
  type ImagePreprocessing,
  imagePreprocessing,
  type PreprocessingDefaults,
} from "../architectures/image-preprocessing.ts"
import {
  clipDefaults,
  siglipDefaults,
  type TowerSizes,
  towerSection,
  towerSizes,
} from "../encoding/tower-layers.ts"
import { countIn, countOr, type Metadata, textIn } from "../weights/gguf-metadata.ts"
import { readJson } from "../weights/json-file.ts"
import { Damaged, explaining, Unsupported } from "../weights/model-file-error.ts"

/** An inverted bottleneck of MobileNetV2 (Sandler et al., arXiv 1801.04381). */
export interface MbConv {
  readonly kernel: number
  readonly stride: number
  /** The depthwise convolution has so many times `inputs` channels. */
  readonly expansion: number
  readonly inputs: number
  readonly outputs: number
}

export interface EfficientNetConfig {
  readonly family: "efficientnet_lite"
  readonly stem: number
  readonly blocks: readonly MbConv[]
  readonly head: number
}

/** A vision transformer (Dosovitskiy et al., arXiv 2010.11929). */
export interface TransformerConfig extends TowerSizes {
  readonly family: "clip" | "siglip" | "siglip2"
  /** Pixels of a side of the squares that it reads as tokens. */
  readonly patch: number
  /** Squares on a side of the picture. */
  readonly grid: number
}

/** A vision tower: an encoder of pictures of one size. */
export interface VisionConfig {
  readonly tower: EfficientNetConfig | TransformerConfig
  readonly preprocessing: ImagePreprocessing
  /** Numbers of a vector, before the map into the embedding space. */
  readonly width: number
  /** Whether the map keeps prefixes of these vectors, as the text model's does. */
  readonly isMatryoshka: boolean
  /** The last part of the tower's own name; its family where the folder has none. */
  readonly name: string
}

const configFile = "config.json"
const maxChannels = 65_536
const maxBlocks = 512

const blockIn = (value: unknown, inputs: number, index: number): MbConv => {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Damaged(`'blocks[${index}]' is not an object`)
  const json: Metadata = new Map(Object.entries(value))
  const block = {
    kernel: countIn(json, "kernel_size", 31),
    stride: countIn(json, "stride", 4),
    expansion: countIn(json, "expand_ratio", 64),
    inputs: countIn(json, "in_channels", maxChannels),
    outputs: countIn(json, "out_channels", maxChannels),
  }
  if (block.inputs !== inputs)
    throw new Damaged(`'blocks[${index}]' reads ${block.inputs} channels, and gets ${inputs}`)
  return block
}

export const efficientNet = (json: Metadata): EfficientNetConfig => {
  const stem = countIn(json, "stem_channels", maxChannels)
  const blocks: unknown = json.get("blocks")
  if (!Array.isArray(blocks) || blocks.length < 1 || blocks.length > maxBlocks)
    throw new Damaged("'blocks' is not an array of blocks")
  const read: MbConv[] = []
  for (const [index, block] of blocks.entries())
    read.push(blockIn(block, read.at(-1)?.outputs ?? stem, index))
  return {
    family: "efficientnet_lite",
    stem,
    blocks: read,
    head: countIn(json, "head_channels", maxChannels),
  }
}

/** What a family makes of config.json. */
interface Family {
  readonly tower: VisionConfig["tower"]
  /** Pixels of a side. */
  readonly edge: number
  readonly width: number
  readonly defaults: PreprocessingDefaults
}

const maxEdge = 1024

export const edgeIn = (json: Metadata, byDefault: number): number => {
  if (countOr(json, "num_channels", 4, 3) !== 3)
    throw new Unsupported("'num_channels' is not 3: this backend reads pictures as RGB")
  return countOr(json, "image_size", maxEdge, byDefault)
}

// values between -1 and 1
const halves = { mean: [0.5, 0.5, 0.5], std: [0.5, 0.5, 0.5], resample: 3 }
export const stretched = (edge: number): PreprocessingDefaults => ({
  ...halves,
  size: { width: edge, height: edge },
})

const efficientNetFamily = (json: Metadata): Family => {
  const edge = edgeIn(json, 224)
  const width = countIn(json, "projection_dim", maxChannels)
  return { tower: efficientNet(json), edge, width, defaults: stretched(edge) }
}

export const transformer = (
  family: TransformerConfig["family"],
  section: Metadata,
  grid: number,
): TransformerConfig => {
  const defaults = family === "clip" ? clipDefaults : siglipDefaults
  const patch = countOr(section, "patch_size", maxEdge, family === "clip" ? 32 : 16)
  return { ...towerSizes(section, { ...defaults, width: 768, heads: 12 }), family, patch, grid }
}

/** Squares on a side of pictures with this edge; pixels beyond the last whole one are not read. */
export const gridOf = (section: Metadata, edge: number, patch: number): number => {
  const grid = Math.floor(edge / countOr(section, "patch_size", maxEdge, patch))
  if (grid < 1) throw new Damaged("'patch_size' is larger than 'image_size'")
  return grid
}

/** What CLIP's image processor does where the file does not say. */
export const clipPreprocessing = (edge: number): PreprocessingDefaults => ({
  size: { shortest_edge: edge },
  crop: { width: edge, height: edge },
  mean: [0.48145466, 0.4578275, 0.40821073],
  std: [0.26862954, 0.26130258, 0.27577711],
  resample: 3,
})

const clip = (json: Metadata): Family => {
  const section = towerSection(json, "vision_config")
  const edge = edgeIn(section, 224)
  return {
    tower: transformer("clip", section, gridOf(section, edge, 32)),
    edge,
    width: countOr(json, "projection_dim", maxChannels, 512),
    defaults: clipPreprocessing(edge),
  }
}

const checkHead = (section: Metadata): void => {
  if ((section.get("vision_use_head") ?? true) !== true)
    throw new Unsupported("'vision_use_head' is off, so it makes no vector of a picture")
}

const siglip = (json: Metadata): Family => {
  const section = towerSection(json, "vision_config")
  checkHead(section)
  const edge = edgeIn(section, 224)
  const tower = transformer("siglip", section, gridOf(section, edge, 16))
  return { tower, edge, width: tower.width, defaults: stretched(edge) }
}

/** A NaFlex model has a number of squares, not a size. */
const siglip2 = (json: Metadata): Family => {
  const section = towerSection(json, "vision_config")
  checkHead(section)
  const squares = countOr(section, "num_patches", maxEdge ** 2, 256)
  const grid = Math.sqrt(squares)
  if (!Number.isInteger(grid)) throw new Unsupported(`'num_patches' is ${squares}, no square`)
  const tower = transformer("siglip2", section, grid)
  const edge = grid * tower.patch
  if (edge > maxEdge) throw new Unsupported(`it reads pictures of ${edge} x ${edge} pixels`)
  const patches = { side: tower.patch, most: 256 }
  const defaults = { ...stretched(edge), resample: 2, patches }
  return { tower, edge, width: tower.width, defaults }
}

const families: Readonly<Record<string, (json: Metadata) => Family>> = {
  efficientnet_lite: efficientNetFamily,
  clip,
  siglip,
  siglip2,
}

const familyIn = (json: Metadata): Family => {
  const type = textIn(json, "model_type")
  const family = Object.hasOwn(families, type) ? families[type] : undefined
  if (family) return family(json)
  throw new Unsupported(`its model_type '${type}' is no vision tower of this backend`)
}

/** Whether a text encoder's folder has a vision tower, too. Throws `ModelFileError`. */
export const hasVisionTower = (folder: string): boolean =>
  readJson(folder, configFile).has("vision_config")

/**
 * Reads the configuration of a folder with a vision tower, alone or beside a text tower. Throws
 * `ModelFileError`.
 */
export const visionConfig = (folder: string, isMatryoshka?: boolean): VisionConfig => {
  const json = readJson(folder, configFile)
  const { tower, edge, width, defaults } = explaining(`${folder}/${configFile}`, () =>
    familyIn(json),
  )
  return {
    tower,
    width,
    isMatryoshka: isMatryoshka ?? json.has("matryoshka_dimensions"),
    name: modelNameIn(json),
    preprocessing: imagePreprocessing(folder, edge, defaults),
  }
}
