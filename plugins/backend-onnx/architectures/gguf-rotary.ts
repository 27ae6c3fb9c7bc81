import type { GgufFile } from "../weights/gguf-file.ts"
import { countIn, countOr, type Metadata, numberIn, numberOr } from "../weights/gguf-metadata.ts"
import { vectorOf } from "../weights/matrix.ts"
import { Damaged, Unsupported } from "../weights/model-file-error.ts"
import { type Architecture, limits } from "./decoder-config.ts"
import { type AttentionKind, families, isNth } from "./families.ts"
import { linearlyScaled, type Rotary, rotationsOf, slowedBy } from "./rotary.ts"
import { type Yarn, yarnDefaults, yarnMagnitude, yarnRotary, yarnWindow } from "./yarn.ts"

const factorsTensor = "rope_freqs.weight"
const longTensors = { short: "rope_factors_short.weight", long: "rope_factors_long.weight" }

/** The whole name of one of an architecture's keys. */
export type Key = (name: string) => string

/** The window of the original training. */
const trainedIn = (metadata: Metadata, key: Key): number => {
  const original = key("rope.scaling.original_context_length")
  return countIn(
    metadata,
    metadata.has(original) ? original : key("context_length"),
    limits.contextTokens,
  )
}

/** Whether long sequences are rotated in another way; a file of one of its two tensors is damaged. */
const isLong = (file: GgufFile): boolean =>
  Object.values(longTensors).some((name) => file.has(name))

/** The same, where long sequences are rotated in another way. */
export const longAfterIn = (file: GgufFile, key: Key): number | undefined =>
  isLong(file) ? trainedIn(file.header.metadata, key) : undefined

const scalingType = "rope.scaling.type"

/**
 * YaRN's; undefined where the file is scaled in another way. What newer converters take from
 * config.json counts as it does there, though llama.cpp leaves it out.
 */
const yarnIn = (metadata: Metadata, key: Key): Yarn | undefined => {
  if (metadata.get(key(scalingType)) !== "yarn") return undefined
  const own = (name: string, byDefault: number) =>
    numberOr(metadata, key(`rope.scaling.${name}`), byDefault)
  const factor = numberIn(metadata, key("rope.scaling.factor"))
  const { fastTurns, slowTurns, isWhole } = yarnDefaults
  return {
    isWhole,
    factor,
    trainedTokens: trainedIn(metadata, key),
    fastTurns: own("yarn_beta_fast", 0) || fastTurns,
    slowTurns: own("yarn_beta_slow", 0) || slowTurns,
    magnitude: own("yarn_attn_factor", own("attn_factor", 1) * yarnMagnitude(factor)),
  }
}

/** The model's window: its own, or what YaRN makes of the original one where that is more. */
export const windowIn = (metadata: Metadata, key: Key): number => {
  const own = countIn(metadata, key("context_length"), limits.contextTokens)
  const yarn = yarnIn(metadata, key)
  return yarn ? Math.max(own, yarnWindow(yarn)) : own
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
    throw new Unsupported(
      `'${key("rope.dimension_count")}' is ${dimensions}: it rotates a part of its ${headSize} dimensions, which this backend can't do`,
    )
  const base = numberOr(metadata, key("rope.freq_base"), 10_000)
  const plain = rotationsOf(base, dimensions)
  const by = (name: string, rotations = plain) =>
    slowedBy(rotations, vectorOf(file, name, plain.length), name)
  if (isLong(file))
    return {
      rotations: by(longTensors.short),
      longRotations: by(longTensors.long),
      magnitude: numberOr(metadata, key("rope.scaling.attn_factor"), 1),
    }
  const yarn = yarnIn(metadata, key)
  const rotary = yarn
    ? yarnRotary(base, dimensions, yarn)
    : { rotations: scaled(plain, metadata, key) }
  if (!file.has(factorsTensor)) return rotary
  return { ...rotary, rotations: by(factorsTensor, rotary.rotations) }
}

const scaled = (rotations: readonly number[], metadata: Metadata, key: Key): readonly number[] => {
  const type = metadata.get(key(scalingType))
  if (type === "linear")
    return linearlyScaled(rotations, numberIn(metadata, key("rope.scaling.factor")))
  if (type !== undefined && type !== "none")
    throw new Unsupported(
      `'${key(scalingType)}' is '${type}'; this backend knows linear, yarn, and factors in '${factorsTensor}'`,
    )
  if (type === "none") return rotations
  // without a type it is linear, as in llama.cpp; the second name is that of older files
  const names = ["rope.scaling.factor", "rope.scale_linear"].map(key)
  const name = names.find((each) => metadata.has(each))
  const factor = name === undefined ? 0 : numberIn(metadata, name)
  // 0 stands for an absent one, as in llama.cpp
  return factor === 0 ? rotations : linearlyScaled(rotations, factor)
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
