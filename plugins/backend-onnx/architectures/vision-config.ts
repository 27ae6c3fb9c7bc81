import { countIn, countOr, type Metadata, present, textIn } from "../weights/gguf-metadata.ts"
import { readJson } from "../weights/json-file.ts"
import { Damaged, explaining, Unsupported } from "../weights/model-file-error.ts"
import { type ImagePreprocessing, imagePreprocessing } from "./image-preprocessing.ts"

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

/** A vision tower: an encoder of pictures of one size. */
export interface VisionConfig {
  readonly tower: EfficientNetConfig
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

const efficientNet = (json: Metadata): EfficientNetConfig => {
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

// both as TensorFlow's models have it: values between -1 and 1
const halves = [0.5, 0.5, 0.5]

const nameIn = (json: Metadata, byDefault: string): string =>
  present(json, "_name_or_path") ? textIn(json, "_name_or_path").split("/").at(-1)! : byDefault

/** Reads the configuration of a folder with a vision tower. Throws `ModelFileError`. */
export const visionConfig = (folder: string, isMatryoshka?: boolean): VisionConfig => {
  const json = readJson(folder, configFile)
  const { edge, ...config } = explaining(`${folder}/${configFile}`, () => {
    const family = textIn(json, "model_type")
    if (family !== "efficientnet_lite")
      throw new Unsupported(`its model_type '${family}' is no vision tower of this backend`)
    if (countOr(json, "num_channels", 4, 3) !== 3)
      throw new Unsupported("'num_channels' is not 3: this backend reads pictures as RGB")
    return {
      tower: efficientNet(json),
      edge: countIn(json, "image_size", 1024),
      width: countIn(json, "projection_dim", maxChannels),
      isMatryoshka: isMatryoshka ?? json.has("matryoshka_dimensions"),
      name: nameIn(json, family),
    }
  })
  const defaults = { size: { width: edge, height: edge }, mean: halves, std: halves }
  return { ...config, preprocessing: imagePreprocessing(folder, edge, defaults) }
}
