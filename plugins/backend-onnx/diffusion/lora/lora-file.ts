import { existsSync, statSync } from "node:fs"
import { join } from "node:path"
import {
  otherAdapter,
  peftConfigFile,
  peftScales,
  scalesIn,
} from "../../architectures/adapter-config.ts"
import {
  findLowRank,
  type LowRank,
  type LowRankTensors,
  readLowRank,
} from "../../architectures/low-rank.ts"
import type { Metadata } from "../../weights/gguf-metadata.ts"
import { Damaged, explaining, ModelFileError, Unsupported } from "../../weights/model-file-error.ts"
import { openSafetensors } from "../../weights/safetensors.ts"
import type { TensorSource } from "../../weights/tensor-file.ts"
import { LayerNames, type LoraTarget } from "./layer-names.ts"
import type { LoraLayer } from "./lora-inputs.ts"
import { type Adapted, type LoraTensor, parseLoraName } from "./lora-names.ts"

/** The change of a layer. */
export interface LoraPair extends LowRank {
  readonly layer: string
}

/** The layers that take LoRAs, by the part that they are in. */
export type LoraLayers = ReadonlyMap<Adapted, readonly LoraLayer[]>

type Weights = ReturnType<typeof openSafetensors>

/** Names of files in a folder, as PEFT and diffusers write them. */
const weightFiles = ["adapter_model.safetensors", "pytorch_lora_weights.safetensors"]

const noTensor = "it holds no tensor of an adapter"
const notPlain = "Name a plain LoRA with the names of kohya's scripts, PEFT or diffusers"

/** A layer of the file: its tensors, and what it is in the model. */
interface Found {
  readonly of: Adapted
  readonly name: string
  readonly target: LoraTarget
  readonly tensors: { a?: string; b?: string; alpha?: string }
}

const partNames: Readonly<Record<Adapted, string>> = {
  denoiser: "denoiser",
  text_encoder: "text encoder",
  text_encoder_2: "second text encoder",
  text_encoder_3: "third text encoder",
}

const targetOf = (
  names: ReadonlyMap<Adapted, LayerNames>,
  { of, layer, underscored }: LoraTensor,
): LoraTarget => {
  const own = names.get(of)
  if (!own)
    throw new Unsupported(
      `it adapts '${layer}' of the ${partNames[of]}, which takes no adapters in this model`,
      "Name a LoRA without this part",
    )
  const target = own.find(layer, underscored)
  if (!target)
    throw new Unsupported(
      `it adapts the layer '${layer}', and the model's ${partNames[of]} has no linear layer of this name`,
      "Name a LoRA that was trained on this model, for linear layers only",
    )
  return target
}

const parsedName = (tensor: string): LoraTensor => {
  const parsed = parseLoraName(tensor)
  if (parsed) return parsed
  throw new Unsupported(`it has the tensor '${tensor}', which is none of a plain LoRA`, notPlain)
}

const layersIn = (
  source: TensorSource,
  names: ReadonlyMap<Adapted, LayerNames>,
): readonly Found[] => {
  const found = new Map<string, Found>()
  for (const tensor of source.names()) {
    const parsed = parsedName(tensor)
    const key = `${parsed.of} ${parsed.layer}`
    const known = found.get(key)
    const { of, layer: name } = parsed
    const entry = known ?? { of, name, target: targetOf(names, parsed), tensors: {} }
    entry.tensors[parsed.side] = tensor
    found.set(key, entry)
  }
  if (!found.size) throw new Damaged(noTensor)
  return [...found.values()]
}

/** Where diffusers keeps PEFT's config, a text of JSON whose keys begin with a part's name. */
const metadataKey = "lora_adapter_metadata"

const parsedObject = (text: string): object => {
  try {
    return Object(JSON.parse(text)) as object
  } catch (cause) {
    throw new Damaged(`its ${metadataKey} is not JSON (${(cause as Error).message})`)
  }
}

type Scale = (layer: string, rank: number) => number

/**
 * The factor of pairs without an alpha of their own, by the part: by a config beside the tensors, or
 * 1.
 */
const scalesOf = (path: string, metadata: ReadonlyMap<string, unknown>) => {
  if (existsSync(join(path, peftConfigFile))) {
    const scale = peftScales(path)
    return () => scale
  }
  const text = metadata.get(metadataKey)
  if (typeof text !== "string") return (): Scale => () => 1
  const own = new Map<string, Metadata>()
  for (const [key, value] of Object.entries(parsedObject(text))) {
    const dot = key.indexOf(".")
    const part = key.slice(0, dot)
    own.set(part, new Map([...(own.get(part) ?? []), [key.slice(dot + 1), value]]) as Metadata)
  }
  return (of: Adapted): Scale => {
    const config = of === "denoiser" ? (own.get("transformer") ?? own.get("unet")) : own.get(of)
    return config ? scalesIn(config, metadataKey) : () => 1
  }
}

/** A layer of the file whose shapes are checked, and whose values are still in it. */
interface Placed {
  readonly of: Adapted
  /** Layers of the model, one after the other in the rows of `b`. */
  readonly layers: readonly LoraLayer[]
  readonly swapped: boolean
  readonly tensors: LowRankTensors
}

const placed = (
  source: TensorSource,
  { of, name, target, tensors }: Found,
  sizes: ReadonlyMap<string, LoraLayer>,
  scale: Scale,
): Placed => {
  const layers = target.layers.map((layer) => sizes.get(layer)!)
  const rows = layers.reduce((sum, layer) => sum + layer.rows, 0)
  const { a, b, alpha } = tensors
  if (a === undefined || b === undefined)
    throw new Damaged(`its layer '${name}' has one matrix of a LoRA without the other`)
  const own = alpha === undefined ? undefined : alphaOf(source, alpha)
  const found = findLowRank(source, { a, b }, { rows, columns: layers[0]!.columns }, (rank) =>
    own === undefined ? scale(name, rank) : own / rank,
  )
  return { of, layers, swapped: target.swapped, tensors: found }
}

const bytesOf = ({ tensors: { rank, a, b } }: Placed): number =>
  rank * (a.columns + b.rows) * Float32Array.BYTES_PER_ELEMENT

const pairsOf = ({ layers, swapped, tensors }: Placed): readonly LoraPair[] => {
  const { rank, a, b } = readLowRank(tensors)
  const all = swapped ? halvesSwapped(b) : b
  let first = 0
  return layers.map((layer) => {
    const part = all.subarray(first * rank, (first + layer.rows) * rank)
    first += layer.rows
    return { layer: layer.name, rank, a, b: part }
  })
}

const alphaOf = (source: TensorSource, name: string): number =>
  readLowRank(findLowRank(source, { a: name, b: name }, { rows: 1, columns: 1 }, () => 1)).a[0]!

const halvesSwapped = (values: Float32Array): Float32Array => {
  const half = values.length / 2
  const out = new Float32Array(values.length)
  out.set(values.subarray(half))
  out.set(values.subarray(0, half), half)
  return out
}

const weightsIn = (path: string): string => {
  if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) return path
  const name = weightFiles.find((file) => existsSync(join(path, file)))
  if (name === undefined)
    throw new ModelFileError(path, `it has neither ${weightFiles.join(" nor ")}`)
  return join(path, name)
}

const placedIn = (path: string, source: Weights, layers: LoraLayers): readonly Placed[] => {
  const names = new Map([...layers].map(([of, all]) => [of, namesOf(all)] as const))
  const scales = scalesOf(path, source.header.metadata)
  const sizes = new Map([...layers].map(([of, all]) => [of, sizesOf(all)] as const))
  const adapted = new Set<string>()
  return layersIn(source, names).map((found) => {
    const one = placed(source, found, sizes.get(found.of)!, scales(found.of))
    for (const { name } of one.layers) {
      const key = `${found.of} ${name}`
      if (adapted.has(key)) throw new Damaged(`it adapts the layer '${name}' twice`)
      adapted.add(key)
    }
    return one
  })
}

/** A LoRA whose shapes are checked, and whose values are still in the file. */
export interface OpenLora {
  /** Memory of its values. */
  readonly bytes: number
  /** Reads the pairs, by the part of the model. Throws `Damaged`. */
  pairs(): ReadonlyMap<Adapted, readonly LoraPair[]>
}

const withWeights = <A>(path: string, use: (source: Weights) => A): A => {
  const source = openSafetensors(weightsIn(path))
  try {
    return explaining(source.path, () => use(source), otherAdapter)
  } finally {
    source.close()
  }
}

/**
 * Opens a LoRA of an image model, as long as `use` runs: a safetensors file with the names of
 * kohya's scripts (https://github.com/kohya-ss/sd-scripts), of diffusers or PEFT, or the folder of
 * one. Throws `ModelFileError`, which names the layer that doesn't fit. Blocks the thread: for
 * workers only.
 */
export const withLoraFile = <A>(path: string, layers: LoraLayers, use: (lora: OpenLora) => A): A =>
  withWeights(path, (source) => {
    const found = placedIn(path, source, layers)
    return use({
      bytes: found.reduce((sum, one) => sum + bytesOf(one), 0),
      pairs: () => {
        const pairs = new Map<Adapted, readonly LoraPair[]>()
        for (const one of found) pairs.set(one.of, [...(pairs.get(one.of) ?? []), ...pairsOf(one)])
        return pairs
      },
    })
  })

/**
 * Memory that a LoRA will take: each of its matrices is kept, or the model is not opened. Which
 * layers the model has is known only once its graph is built. Throws `ModelFileError`.
 */
export const loraBytes = (path: string): number =>
  withWeights(path, (source) => {
    // refuses a config of what is no plain LoRA
    scalesOf(path, source.header.metadata)("denoiser")
    const sizes = [...source.names()].map((name) => {
      const { rows, columns } = source.tensor(name)
      return parsedName(name).side === "alpha" ? 0 : rows * columns
    })
    if (!sizes.length) throw new Damaged(noTensor)
    return sizes.reduce((sum, size) => sum + size, 0) * Float32Array.BYTES_PER_ELEMENT
  })

const sizesOf = (layers: readonly LoraLayer[]): ReadonlyMap<string, LoraLayer> =>
  new Map(layers.map((layer) => [layer.name, layer]))

const namesOf = (layers: readonly LoraLayer[]): LayerNames =>
  new LayerNames(layers.map(({ name }) => name))
