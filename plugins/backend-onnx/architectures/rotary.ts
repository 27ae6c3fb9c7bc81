import { countIn, type Metadata, numberIn, textIn } from "../weights/gguf-metadata.ts"
import { Damaged, Unsupported } from "../weights/model-file-error.ts"

/** How the queries and keys of a layer are rotated. */
export interface Rotary {
  /**
   * Radians per position for each pair of the rotated dimensions, which are the first ones of a
   * head.
   */
  readonly rotations: readonly number[]
  /** The same for sequences that may get longer than `longAfter`. */
  readonly longRotations?: readonly number[]
  /** Factor of what is rotated; absent: 1. */
  readonly magnitude?: number
}

/**
 * Rotary position embedding (Su et al., arXiv 2104.09864): pair i of a head turns by
 * base^(-2i/headSize) radians per position. Returns `[headSize / 2]`.
 */
export const rotationsOf = (base: number, headSize: number): readonly number[] => {
  if (!(base > 0) || !Number.isFinite(base))
    throw new Damaged(`the rotary base ${base} is impossible`)
  return Array.from({ length: headSize / 2 }, (_, i) => base ** ((-2 * i) / headSize))
}

/**
 * Slows every pair down by the same factor (position interpolation, Chen et al., arXiv 2306.15595).
 */
export const linearlyScaled = (rotations: readonly number[], factor: number): readonly number[] => {
  if (!(factor > 0)) throw new Damaged(`the rotary scaling factor ${factor} is impossible`)
  return rotations.map((rotation) => rotation / factor)
}

/** Slows every pair down by a factor of its own. */
export const slowedBy = (
  rotations: readonly number[],
  factors: ArrayLike<number>,
  name: string,
): readonly number[] => {
  const slowed = rotations.map((rotation, i) => rotation / factors[i]!)
  if (factors.length !== rotations.length || !slowed.every((rotation) => Number.isFinite(rotation)))
    throw new Damaged(`'${name}' holds an impossible factor, or too few`)
  return slowed
}

/**
 * LongRoPE's (Ding et al., arXiv 2402.13753) factor of what is rotated, for a window that is
 * `extension` times the original one.
 */
export const longMagnitude = (extension: number, trainedTokens: number): number =>
  extension > 1 ? Math.sqrt(1 + Math.log(extension) / Math.log(trainedTokens)) : 1

interface Llama3Scaling {
  readonly factor: number
  readonly lowFactor: number
  readonly highFactor: number
  /** The context length of the original training. */
  readonly trainedTokens: number
}

/**
 * Llama 3.1's scaling: pairs that turn less than `lowFactor` times within the original context are
 * slowed down, those that turn more than `highFactor` times are not; between them the two are
 * interpolated.
 */
const llama3Scaled = (
  rotations: readonly number[],
  { factor, lowFactor, highFactor, trainedTokens }: Llama3Scaling,
): readonly number[] => {
  if (!(factor > 0 && lowFactor > 0 && highFactor > lowFactor))
    throw new Damaged("the factors of its rotary scaling are impossible")
  return rotations.map((rotation) => {
    const turns = (trainedTokens * rotation) / (2 * Math.PI)
    const kept = Math.min(1, Math.max(0, (turns - lowFactor) / (highFactor - lowFactor)))
    return (1 - kept) * (rotation / factor) + kept * rotation
  })
}

const typeKeys = ["rope_type", "type"]

/** The kind of a scaling of config.json, which older files name by another key. */
export const scalingTypeIn = (scaling: Metadata): string => {
  const key = typeKeys.find((each) => scaling.has(each))
  return key === undefined ? "default" : textIn(scaling, key)
}

/** Kinds of scaling that leave the rotations as they are. */
const plainTypes: readonly string[] = [
  "default",
  // positions of rows and columns
  "mrope",
  // of longer texts than the model's window, which are not read
  "dynamic",
]

/** Applies the scaling of config.json's `rope_scaling`, or `rope_parameters` in newer files. */
export const scaledBy = (rotations: readonly number[], scaling: Metadata): readonly number[] => {
  const type = scalingTypeIn(scaling)
  if (plainTypes.includes(type)) return rotations
  if (type === "linear") return linearlyScaled(rotations, numberIn(scaling, "factor"))
  if (type === "llama3")
    return llama3Scaled(rotations, {
      factor: numberIn(scaling, "factor"),
      lowFactor: numberIn(scaling, "low_freq_factor"),
      highFactor: numberIn(scaling, "high_freq_factor"),
      trainedTokens: countIn(scaling, "original_max_position_embeddings", 2 ** 31),
    })
  throw new Unsupported(
    `its rotary embedding is scaled by the 'rope_type' '${type}', which this backend can't do here`,
  )
}
