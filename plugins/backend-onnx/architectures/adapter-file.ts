import { createHash } from "node:crypto"
import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { contentOf } from "../weights/content-digest.ts"
import { openGguf } from "../weights/gguf-file.ts"
import { type Metadata, numberOr } from "../weights/gguf-metadata.ts"
import { ggufAt, refuseParts } from "../weights/gguf-parts.ts"
import { halvesOrder } from "../weights/matrix.ts"
import { Damaged, explaining, ModelFileError, Unsupported } from "../weights/model-file-error.ts"
import { openSafetensors } from "../weights/safetensors.ts"
import type { TensorSource } from "../weights/tensor-file.ts"
import { otherAdapter, peftConfigFile, peftScales } from "./adapter-config.ts"
import type { DecoderConfig } from "./decoder-config.ts"
import { layerMatrices, matricesIn, sizesOf } from "./decoder-weights.ts"
import { findLowRank, type LowRank, type LowRankTensors, readLowRank } from "./low-rank.ts"
import { type PairName, parsePeftName, refuseSeveral } from "./peft-names.ts"
import { folderNames, ggufNames, type LayerMatrix, type TensorNames } from "./tensor-names.ts"

/** What the file's header says of the change of a layer's matrix. */
export interface PairShape {
  readonly layer: number
  readonly part: LayerMatrix
  readonly rank: number
}

/** The change of a layer's matrix; rotary pairs are half a head apart, as in the graph. */
export interface LowRankPair extends PairShape, LowRank {}

/** An adapter whose shapes are checked, and whose values are still in the file. */
export interface OpenAdapter {
  readonly shapes: readonly PairShape[]
  /** Reads the pairs, one tensor's after the other. Throws `Damaged`. */
  pairs(): Iterable<LowRankPair>
}

/** How a file names its tensors, and what it multiplies them with. */
interface Format {
  readonly names: TensorNames
  /** Undefined: it is none of a pair. */
  parse(tensor: string): PairName | undefined
  /** The factor of a pair of this rank. */
  scale(stem: string, rank: number): number
  /** Rows of q and k are stored with rotary pairs adjacent. */
  readonly pairsAreNeighbours: boolean
}

const reordered = (b: Float32Array, rank: number, heads: number): Float32Array => {
  const order = halvesOrder(b.length / rank, heads)
  const out = new Float32Array(b.length)
  for (const [row, from] of order.entries())
    out.set(b.subarray(from * rank, (from + 1) * rank), row * rank)
  return out
}

/** Where a tensor of the model is: the parts whose rows it has, one after the other. */
interface Place {
  readonly layer: number
  readonly parts: readonly LayerMatrix[]
}

/** Names of a pair's tensors. */
type Sides = Partial<Record<PairName["side"], string>>

const tensorsOf = (
  source: TensorSource,
  format: Format,
  config: DecoderConfig,
  stem: string,
  { parts }: Place,
  { a, b }: Sides,
): LowRankTensors => {
  if (a === undefined || b === undefined)
    throw new Damaged(`its layer '${stem}' has one matrix of a LoRA without the other`)
  const sizes = parts.map((part) => sizesOf(config, part))
  const rows = sizes.reduce((sum, size) => sum + size.rows, 0)
  const { columns } = sizes[0]!
  return findLowRank(source, { a, b }, { rows, columns }, (own) => format.scale(stem, own))
}

const pairsOf = (
  tensors: LowRankTensors,
  format: Format,
  config: DecoderConfig,
  { layer, parts }: Place,
): readonly LowRankPair[] => {
  const { rank, a, b } = readLowRank(tensors)
  let first = 0
  return parts.map((part) => {
    const { rows } = sizesOf(config, part)
    const own = b.subarray(first * rank, (first + rows) * rank)
    first += rows
    const heads = { q: config.heads, k: config.kvHeads }[part as "q" | "k"]
    const isShuffled = format.pairsAreNeighbours && heads !== undefined
    return { layer, part, rank, a, b: isShuffled ? reordered(own, rank, heads) : own }
  })
}

const placesOf = (names: TensorNames, config: DecoderConfig): ReadonlyMap<string, Place> => {
  const places = new Map<string, Place>()
  for (let layer = 0; layer < config.layers; layer++)
    for (const part of matricesIn(config, layer)) {
      const stem = `${names.layer(layer)}${names.parts[part]}`
      places.set(stem, { layer, parts: [...(places.get(stem)?.parts ?? []), part] })
    }
  return places
}

const sidesIn = (
  source: TensorSource,
  format: Format,
  { layers }: DecoderConfig,
  places: ReadonlyMap<string, Place>,
): ReadonlyMap<string, Sides> => {
  const all = new Map<string, Sides>()
  for (const name of source.names()) {
    const found = format.parse(name)
    if (!found || !places.has(found.stem)) {
      const known = new Set(layerMatrices.map((part) => format.names.parts[part]))
      throw new Unsupported(
        `it has the tensor '${name}', and this backend adapts the matrices ${[...known].join(", ")} of ${layers} layers only`,
        "Name an adapter that was trained on this model, for these modules",
      )
    }
    const sides = all.get(found.stem) ?? {}
    const other = sides[found.side]
    if (other !== undefined)
      throw new Damaged(`it has '${found.stem}' twice, by the tensors '${other}' and '${name}'`)
    all.set(found.stem, { ...sides, [found.side]: name })
  }
  if (!all.size) throw new Damaged("it holds no tensor of an adapter")
  return all
}

const openPairs = (source: TensorSource, format: Format, config: DecoderConfig): OpenAdapter => {
  const places = placesOf(format.names, config)
  const found = [...sidesIn(source, format, config, places)].map(([stem, sides]) => {
    const place = places.get(stem)!
    return { place, tensors: tensorsOf(source, format, config, stem, place, sides) }
  })
  return {
    shapes: found.flatMap(({ place: { layer, parts }, tensors: { rank } }) =>
      parts.map((part) => ({ layer, part, rank })),
    ),
    pairs: function* () {
      for (const { place, tensors } of found) yield* pairsOf(tensors, format, config, place)
    },
  }
}

export const adapterWeightsFile = "adapter_model.safetensors"

type Use<A> = (adapter: OpenAdapter) => A

const refuseMissingWeights = (path: string): void => {
  if (existsSync(join(path, adapterWeightsFile))) return
  const names = readdirSync(path)
  const shards = names.filter((name) => /^adapter_model-.*\.safetensors$/.test(name))
  const why = names.includes("adapter_model.bin")
    ? "its weights are in adapter_model.bin, whose format can run code"
    : shards.length > 0
      ? `its weights are in ${shards.length} files, such as ${shards.toSorted()[0]}`
      : `it has no ${adapterWeightsFile}`
  throw new ModelFileError(path, why, `Save it as one ${adapterWeightsFile}`)
}

const fromFolder = <A>(path: string, config: DecoderConfig, use: Use<A>): A => {
  const scale = peftScales(path)
  refuseMissingWeights(path)
  const source = openSafetensors(join(path, adapterWeightsFile))
  // the tensors of the model itself are not in the file
  const stems = [...source.names()].flatMap((name) => parsePeftName(name)?.stem ?? [])
  const holds = (start: string) => stems.some((stem) => stem.startsWith(start))
  const format: Format = {
    names: folderNames(config.architecture, {
      has: (name) => holds(name.replace(/embed_tokens\.weight$/, "layers.")),
      names: () => [],
    }),
    parse: parsePeftName,
    scale,
    pairsAreNeighbours: false,
  }
  try {
    const opened = () => {
      refuseSeveral(source)
      return use(openPairs(source, format, config))
    }
    return explaining(source.path, opened, otherAdapter)
  } finally {
    source.close()
  }
}

/** The name in GGUF files: those of Mistral name the architecture llama. */
const ggufName = ({ architecture }: DecoderConfig): string =>
  architecture === "mistral" ? "llama" : architecture

const checkGguf = (metadata: Metadata, config: DecoderConfig): void => {
  refuseParts(metadata)
  const wanted = { "general.type": "adapter", "adapter.type": "lora" }
  for (const [key, value] of Object.entries(wanted))
    if (metadata.get(key) !== value)
      throw new Unsupported(`its '${key}' is '${metadata.get(key) ?? ""}', not '${value}'`)
  const architecture = metadata.get("general.architecture")
  if (architecture !== ggufName(config))
    throw new Unsupported(
      `it was made for the architecture '${architecture}', and the model is a ${ggufName(config)}`,
      "Name an adapter that was trained on this model",
    )
  if (metadata.has("adapter.alora.invocation_tokens"))
    throw new Unsupported("it is an activated LoRA ('adapter.alora.invocation_tokens')")
}

const fromGguf = <A>(path: string, config: DecoderConfig, use: Use<A>): A => {
  const source = openGguf(path)
  const { metadata } = source.header
  const format: Omit<Format, "scale"> = {
    names: ggufNames(config.architecture),
    parse: (name) => {
      const found = /^(.+)\.weight\.lora_([ab])$/.exec(name)
      return found ? { stem: found[1]!, side: found[2] as "a" | "b" } : undefined
    },
    pairsAreNeighbours: config.architecture === "smollm3" || ggufName(config) === "llama",
  }
  try {
    const opened = () => {
      checkGguf(metadata, config)
      // 0 stands for an absent one, as in llama.cpp
      const alpha = numberOr(metadata, "adapter.lora.alpha", 0)
      const scale = (_: string, rank: number) => (alpha === 0 ? 1 : alpha / rank)
      return use(openPairs(source, { ...format, scale }, config))
    }
    return explaining(path, opened, otherAdapter)
  } finally {
    source.close()
  }
}

/** Returns the GGUF adapter that a path stands for; undefined for a folder as PEFT writes it. */
const ggufOf = (path: string): string | undefined =>
  existsSync(join(path, peftConfigFile)) ? undefined : ggufAt(path)

/**
 * Opens a LoRA (Hu et al., arXiv 2106.09685) of a decoder, as long as `use` runs: a folder as PEFT
 * writes it, or a GGUF adapter (or a folder with one). Throws `ModelFileError`. Blocks the thread:
 * for workers only.
 */
export const withAdapterFile = <A>(path: string, config: DecoderConfig, use: Use<A>): A => {
  const file = ggufOf(path)
  if (file === undefined) return fromFolder(path, config, use)
  if (path.endsWith(".safetensors") || path.endsWith(".json"))
    throw new ModelFileError(
      path,
      `an adapter of PEFT is a folder with ${peftConfigFile} and ${adapterWeightsFile}`,
      "Name the folder, with a / at its end",
    )
  return fromGguf(file, config, use)
}

/** Digest of what an adapter is read from. Blocks the thread: for workers only. */
export const adapterDigest = (path: string): string => {
  const file = ggufOf(path)
  const files = file ? [file] : [peftConfigFile, adapterWeightsFile].map((name) => join(path, name))
  const contents = files.map((file) => contentOf(file).sha256)
  return createHash("sha256").update(contents.join()).digest("hex").slice(0, 32)
}
