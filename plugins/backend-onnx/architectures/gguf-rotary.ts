import type { GgufFile } from "../weights/gguf-file.ts"
import { countIn, countOr, type Metadata, numberIn, numberOr } from "../weights/gguf-metadata.ts"
import { vectorOf } from "../weights/matrix.ts"
import { Damaged, Unsupported } from "../weights/model-file-error.ts"
import { type Architecture, limits } from "./decoder-config.ts"
import { type AttentionKind, families, isNth } from "./families.ts"
import { linearlyScaled, type Rotary, rotationsOf, slowedBy } from "./rotary.ts"

const factorsTensor = "rope_freqs.weight"
const longTensors = { short: "rope_factors_short.weight", long: "rope_factors_long.weight" }

/** The whole name of one of an architecture's keys. */
export type Key = (name: string) => string

/** The window of the original training, where long sequences are rotated in another way. */
export const longAfterIn = (file: GgufFile, key: Key): number | undefined => {
  if (!file.has(longTensors.long)) return undefined
  const original = key("rope.scaling.original_context_length")
  const { metadata } = file.header
  return countIn(
    metadata,
    metadata.has(original) ? original : key("context_length"),
    limits.contextTokens,
  )
}

const wholeRotary = (
  file: GgufFile,
  key: Key,
  architecture: Architecture,
  headSize: number,
): Rotary => {
  const { metadata } = file.header
  const dimensions = countOr(metadata, key("rope.dimension_count"), headSize, headSize)
  if (dimensions % 2) throw new Damaged(`it rotates ${dimensions} dimensions, an odd number`)
  if (dimensions !== headSize && architecture !== "phi3")
    throw new Unsupported("it rotates a part of its dimensions, which this backend can't do")
  const plain = rotationsOf(numberOr(metadata, key("rope.freq_base"), 10_000), dimensions)
  const by = (name: string) => slowedBy(plain, vectorOf(file, name, plain.length), name)
  if (file.has(longTensors.long))
    return {
      rotations: by(longTensors.short),
      longRotations: by(longTensors.long),
      magnitude: numberOr(metadata, key("rope.scaling.attn_factor"), 1),
    }
  return { rotations: scaled(file.has(factorsTensor) ? by(factorsTensor) : plain, metadata, key) }
}

const scaled = (rotations: readonly number[], metadata: Metadata, key: Key): readonly number[] => {
  const type = metadata.get(key("rope.scaling.type"))
  if (type === "linear")
    return linearlyScaled(rotations, numberIn(metadata, key("rope.scaling.factor")))
  if (type !== undefined && type !== "none")
    throw new Unsupported(
      `its rotary embedding is scaled by '${type}'; this backend knows linear, and factors in '${factorsTensor}'`,
    )
  // files from before scaling had a type
  const old = key("rope.scale_linear")
  return metadata.has(old) ? linearlyScaled(rotations, numberIn(metadata, old)) : rotations
}

/** The rotary embedding of each layer. */
export const rotaryIn = (
  file: GgufFile,
  key: Key,
  architecture: Architecture,
  kinds: readonly AttentionKind[],
  headSize: number,
): readonly (Rotary | undefined)[] => {
  const { localBase, unrotatedEvery } = families[architecture]
  const whole = wholeRotary(file, key, architecture, headSize)
  if (localBase === undefined)
    return kinds.map((_, layer) =>
      unrotatedEvery !== undefined && isNth(unrotatedEvery, layer) ? undefined : whole,
    )
  const base = numberOr(file.header.metadata, key("rope.freq_base_swa"), localBase)
  const local: Rotary = { rotations: rotationsOf(base, headSize) }
  return kinds.map((kind) => (kind === "sliding_attention" ? local : whole))
}
