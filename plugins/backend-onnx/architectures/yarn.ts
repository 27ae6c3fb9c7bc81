import { countIn, type Metadata, numberIn, numberOr } from "../weights/gguf-metadata.ts"
import { Damaged } from "../weights/model-file-error.ts"
import { limits } from "./decoder-config.ts"
import { type Rotary, rotationsOf } from "./rotary.ts"

export interface Yarn {
  readonly factor: number
  /** The window of the original training. */
  readonly trainedTokens: number
  /** Pairs that turn more often than this within that window are kept as they are. */
  readonly fastTurns: number
  /** Those that turn less often are slowed down by the whole factor. */
  readonly slowTurns: number
  /** The pairs at which the two begin are whole numbers. */
  readonly isWhole: boolean
  /** Factor of what is rotated. */
  readonly magnitude: number
}

/** What counts where a file says nothing else. */
export const yarnDefaults = { fastTurns: 32, slowTurns: 1, isWhole: true }

/** YaRN's factor of what is rotated, by how much it widens the window. */
export const yarnMagnitude = (factor: number, slope = 1): number =>
  factor > 1 ? 0.1 * slope * Math.log(factor) + 1 : 1

/**
 * YaRN (Peng et al., arXiv 2309.00071): pairs that turn often are kept as they are, those that turn
 * seldom are slowed down, and between them the two are interpolated, pair by pair.
 */
export const yarnRotary = (base: number, dimensions: number, yarn: Yarn): Rotary => {
  const { factor, trainedTokens, fastTurns, slowTurns, isWhole, magnitude } = yarn
  if (!(factor > 0)) throw new Damaged(`the rotary scaling factor ${factor} is impossible`)
  const pairThatTurns = (turns: number) =>
    (dimensions * Math.log(trainedTokens / (turns * 2 * Math.PI))) / (2 * Math.log(base))
  const [fast, slow] = [pairThatTurns(fastTurns), pairThatTurns(slowTurns)]
  if (!Number.isFinite(fast) || !Number.isFinite(slow))
    throw new Damaged(
      `its rotary scaling is impossible: 'beta_fast' ${fastTurns}, 'beta_slow' ${slowTurns}, base ${base}`,
    )
  const from = Math.max(isWhole ? Math.floor(fast) : fast, 0)
  const to = Math.min(isWhole ? Math.ceil(slow) : slow, dimensions - 1)
  const width = from === to ? 0.001 : to - from
  const rotations = rotationsOf(base, dimensions).map((rotation, pair) => {
    const slowed = Math.min(1, Math.max(0, (pair - from) / width))
    return (rotation / factor) * slowed + rotation * (1 - slowed)
  })
  return { rotations, magnitude }
}

const magnitudeIn = (scaling: Metadata, factor: number): number => {
  const [own, all] = [numberOr(scaling, "mscale", 0), numberOr(scaling, "mscale_all_dim", 0)]
  return numberOr(
    scaling,
    "attention_factor",
    own && all ? yarnMagnitude(factor, own) / yarnMagnitude(factor, all) : yarnMagnitude(factor),
  )
}

/** Reads config.json's `rope_scaling`, in which the window of the original training stands. */
export const yarnIn = (scaling: Metadata): Yarn => {
  const factor = numberIn(scaling, "factor")
  const { fastTurns, slowTurns, isWhole } = yarnDefaults
  return {
    factor,
    trainedTokens: countIn(scaling, "original_max_position_embeddings", limits.contextTokens),
    fastTurns: numberOr(scaling, "beta_fast", 0) || fastTurns,
    slowTurns: numberOr(scaling, "beta_slow", 0) || slowTurns,
    isWhole: scaling.has("truncate") ? scaling.get("truncate") === true : isWhole,
    magnitude: magnitudeIn(scaling, factor),
  }
}

/** The window that YaRN makes of the original one. */
export const yarnWindow = ({ factor, trainedTokens }: Yarn): number =>
  Math.min(limits.contextTokens, Math.floor(factor * trainedTokens))
