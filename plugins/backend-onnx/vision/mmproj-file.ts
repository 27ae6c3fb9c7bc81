import type { ImagePreprocessing } from "../architectures/image-preprocessing.ts"
import { activationNamed } from "../encoding/encoder-parts.ts"
import { openGguf } from "../weights/gguf-file.ts"
import type { GgufHeader } from "../weights/gguf-header.ts"
import {
  countIn,
  countOr,
  type Metadata,
  numberIn,
  numbersIn,
  present,
  textOr,
} from "../weights/gguf-metadata.ts"
import { refuseParts } from "../weights/gguf-parts.ts"
import { Damaged, explaining, Unsupported } from "../weights/model-file-error.ts"
import type { TensorSource } from "../weights/tensor-file.ts"
import type { TiledSight } from "./sight-config.ts"
import type { TransformerConfig } from "./vision-config.ts"

/** Keys and tensors of towers in GGUF files are those that llama.cpp's converters write. */
const vision = "clip.vision."
const maxEdge = 4096

const names: Readonly<Record<string, string>> = {
  "embeddings.patch_embedding": "v.patch_embd",
  "embeddings.class_embedding": "v.class_embd",
  "embeddings.position_embedding": "v.position_embd",
  pre_layrnorm: "v.pre_ln",
  post_layernorm: "v.post_ln",
  "multi_modal_projector.linear_1": "mm.0",
  "multi_modal_projector.linear_2": "mm.2",
  "connector.modality_projection.proj": "mm.model.fc",
}
const layerNames: Readonly<Record<string, string>> = {
  "self_attn.q_proj": "attn_q",
  "self_attn.k_proj": "attn_k",
  "self_attn.v_proj": "attn_v",
  "self_attn.out_proj": "attn_out",
  layer_norm1: "ln1",
  layer_norm2: "ln2",
}

/** The first file of a converter that called the first matrix of a feed-forward part `ffn_down`. */
const isOld = (metadata: Metadata): boolean => metadata.get("clip.has_llava_projector") === true

/** Whether `ffn_down` is read before `ffn_up`: by its shape, and where that says nothing by age. */
const isDownFirst = ({ metadata, tensors }: GgufHeader): boolean => {
  const down = tensors.get("v.blk.0.ffn_down.weight")
  if (!down || down.rows === down.columns) return isOld(metadata)
  return down.columns === metadata.get(`${vision}embedding_length`)
}

/** The name in the file of a tensor by its name in a folder. */
const ggufName = (name: string, downFirst: boolean): string => {
  const [, stem = name, kind = ""] = /^(.+)(\.weight|\.bias)$/.exec(name) ?? []
  const own = stem.replace(/^vision_model\./, "")
  const [, layer, part] = /^encoder\.layers\.(\d+)\.(.+)$/.exec(own) ?? []
  if (layer === undefined) return `${names[own] ?? own}${kind}`
  const fed = { "mlp.fc1": downFirst ? "down" : "up", "mlp.fc2": downFirst ? "up" : "down" }[part!]
  return `v.blk.${layer}.${fed === undefined ? layerNames[part!] : `ffn_${fed}`}${kind}`
}

/** Opens the tensors of a GGUF file by the names that they have in folders. */
export const openMmproj = (path: string): TensorSource => {
  const file = openGguf(path)
  const downFirst = isDownFirst(file.header)
  const named = (name: string) => ggufName(name, downFirst)
  return {
    path,
    names: () => file.names(),
    has: (name) => file.has(named(name)),
    tensor: (name) => {
      const entry = file.tensor(named(name))
      if (!name.endsWith("patch_embedding.weight")) return entry
      // in GGUF a row of a tensor of four dimensions is its innermost one
      const rows = countIn(file.header.metadata, `${vision}embedding_length`, 65_536)
      return { ...entry, rows, columns: (entry.rows * entry.columns) / rows }
    },
    rows: (entry, first, count) => file.rows(entry, first, count),
    close: () => file.close(),
  }
}

const activationIn = (metadata: Metadata) =>
  activationNamed(
    metadata.get("clip.use_silu") === true
      ? "silu"
      : metadata.get("clip.use_gelu") === true
        ? "gelu_pytorch_tanh"
        : "quick_gelu",
  )

const towerIn = ({ metadata, tensors }: GgufHeader): TransformerConfig => {
  const width = countIn(metadata, `${vision}embedding_length`, 65_536)
  const heads = countIn(metadata, `${vision}attention.head_count`, 1024)
  if (width % heads) throw new Damaged(`${heads} heads don't fit a width of ${width}`)
  const edge = countIn(metadata, `${vision}image_size`, 1024)
  const patch = countIn(metadata, `${vision}patch_size`, edge)
  return {
    family: tensors.has("v.class_embd") ? "clip" : "siglip",
    layers: countIn(metadata, `${vision}block_count`, 512),
    width,
    heads,
    feedForward: countIn(metadata, `${vision}feed_forward_length`, 1_048_576),
    normEpsilon: numberIn(metadata, `${vision}attention.layer_norm_epsilon`),
    activation: activationIn(metadata),
    patch,
    grid: Math.floor(edge / patch),
  }
}

/** The number of layers that are run: files with fewer than the tower had end at the last of them. */
const layersIn = (metadata: Metadata, layers: number): number => {
  const key = `${vision}feature_layer`
  if (!present(metadata, key)) return isOld(metadata) ? layers : Math.max(1, layers - 1)
  const read = numbersIn(metadata, key)
  if (read.length !== 1) throw new Unsupported(`'${key}' is not one number`)
  if (!(read[0]! >= 1 && read[0]! <= layers)) throw new Damaged(`'${key}' is ${read[0]}`)
  return read[0]!
}

const channelsIn = (metadata: Metadata, name: string): readonly number[] => {
  const values = numbersIn(metadata, `${vision}${name}`)
  if (
    values.length !== 3 ||
    !values.every(Number.isFinite) ||
    (name === "image_std" && values.includes(0))
  )
    throw new Damaged(`'${vision}${name}' has not a number for each of three channels`)
  return values
}

const preprocessingIn = (
  metadata: Metadata,
  edge: number,
  resize: ImagePreprocessing["resize"],
  kernel: ImagePreprocessing["kernel"],
): ImagePreprocessing => ({
  width: edge,
  height: edge,
  resize,
  kernel,
  mean: channelsIn(metadata, "image_mean"),
  std: channelsIn(metadata, "image_std"),
  rescale: 1 / 255,
})

const widthOf = ({ tensors }: GgufHeader, name: string): number => {
  const entry = tensors.get(name)
  if (!entry) throw new Damaged(`the tensor '${name}' is missing`)
  return entry.rows
}

const idefics3 = (header: GgufHeader, tower: TransformerConfig, edge: number): TiledSight => {
  const { metadata } = header
  const scale = countOr(metadata, `${vision}projector.scale_factor`, 16, 2)
  if (tower.grid % scale)
    throw new Damaged(`'${vision}projector.scale_factor' ${scale} does not divide ${tower.grid}`)
  const exact = { mode: "exact", width: edge, height: edge } as const
  return {
    family: "idefics3",
    tower,
    states: { layers: tower.layers, isNormed: true, keepsClass: false },
    connector: { type: "shuffle", scale },
    width: widthOf(header, "mm.model.fc.weight"),
    tokens: (tower.grid / scale) ** 2,
    preprocessing: preprocessingIn(metadata, edge, exact, "lanczos3"),
    tiling: {
      longestEdge: countOr(metadata, `${vision}preproc_image_size`, maxEdge, 4 * edge),
      edge,
      splits: true,
      kernel: "lanczos3",
    },
  }
}

const llava = (header: GgufHeader, tower: TransformerConfig, edge: number): TiledSight => {
  const { metadata } = header
  for (const key of ["image_grid_pinpoints", "image_crop_resolution"])
    if (present(metadata, `${vision}${key}`))
      throw new Unsupported(
        `it reads images in several sizes ('${vision}${key}'), which this backend can't do`,
      )
  const resize: ImagePreprocessing["resize"] =
    tower.family === "clip"
      ? { mode: "shortest-edge", edge }
      : { mode: "exact", width: edge, height: edge }
  return {
    family: "llava",
    tower,
    states: { layers: layersIn(metadata, tower.layers), isNormed: false, keepsClass: false },
    connector: { type: "mlp", activation: "gelu" },
    width: widthOf(header, "mm.2.weight"),
    tokens: tower.grid ** 2,
    preprocessing: preprocessingIn(metadata, edge, resize, "cubic"),
  }
}

/** Reads how a chat model sees by a GGUF file of a tower and a projector. Throws `ModelFileError`. */
export const mmprojConfig = (path: string): TiledSight => {
  const file = openGguf(path)
  try {
    return explaining(path, () => {
      const { metadata } = file.header
      refuseParts(metadata)
      const architecture = metadata.get("general.architecture")
      if (architecture !== "clip" || metadata.get("clip.has_vision_encoder") === false)
        throw new Unsupported(`it is no tower that reads images, but a '${architecture}'`)
      const type = textOr(metadata, "clip.projector_type", "mlp")
      if (type !== "mlp" && type !== "idefics3")
        throw new Unsupported(
          `its projector is a '${type}', and this backend reads images through mlp and idefics3 in GGUF files`,
        )
      const tower = towerIn(file.header)
      const edge = countIn(metadata, `${vision}image_size`, 1024)
      return (type === "mlp" ? llava : idefics3)(file.header, tower, edge)
    })
  } finally {
    file.close()
  }
}
