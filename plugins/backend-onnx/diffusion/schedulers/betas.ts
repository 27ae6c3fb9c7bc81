import {
  countOr,
  type Metadata,
  numberOr,
  numbersIn,
  present,
} from "../../weights/gguf-metadata.ts"
import { Damaged } from "../../weights/model-file-error.ts"
import { choiceOf, isOn, mixed, scaled } from "./schedule.ts"

const maxTrainSteps = 100_000

/** How many noise levels a model was trained with. */
export const trainStepsIn = (config: Metadata): number =>
  countOr(config, "num_train_timesteps", maxTrainSteps, 1_000)

const even = (from: number, to: number, count: number): number[] =>
  Array.from({ length: count }, (_, i) => from + ((to - from) * i) / Math.max(1, count - 1))

const betasIn = (config: Metadata, count: number): readonly number[] => {
  if (present(config, "trained_betas")) {
    const betas = numbersIn(config, "trained_betas")
    if (betas.length !== count)
      throw new Damaged(`'trained_betas' has ${betas.length} numbers, not ${count}`)
    return betas
  }
  const [from, to] = [numberOr(config, "beta_start", 1e-4), numberOr(config, "beta_end", 0.02)]
  const names = ["linear", "scaled_linear", "squaredcos_cap_v2"] as const
  switch (choiceOf(config, "beta_schedule", names, "linear")) {
    case "linear":
      return even(from, to, count)
    case "scaled_linear":
      return even(Math.sqrt(from), Math.sqrt(to), count).map((root) => root * root)
    default: {
      const left = (t: number) => Math.cos(((t + 0.008) / 1.008) * (Math.PI / 2)) ** 2
      return Array.from({ length: count }, (_, i) =>
        Math.min(1 - left((i + 1) / count) / left(i / count), 0.999),
      )
    }
  }
}

/** Moves the roots so that the last level is noise alone (Lin et al. 2023, algorithm 1). */
const withoutSignal = (alphas: readonly number[]): readonly number[] => {
  const roots = alphas.map(Math.sqrt)
  const [first, last] = [roots[0]!, roots.at(-1)!]
  return roots.map((root) => ((root - last) * (first / (first - last))) ** 2)
}

/**
 * The part of the signal's variance that is left at each noise level, falling: the cumulative
 * product of 1 - beta. `least` stands for zero, where levels are divided by it.
 */
export const signalIn = (config: Metadata, least = 0): readonly number[] => {
  let product = 1
  const alphas = betasIn(config, trainStepsIn(config)).map((beta) => {
    product *= 1 - beta
    return product
  })
  if (!isOn(config, "rescale_betas_zero_snr")) return alphas
  const rescaled = withoutSignal(alphas)
  return [...rescaled.slice(0, -1), least]
}

/** Rounds halves to even numbers, as NumPy does. */
const rounded = (value: number): number => {
  const floor = Math.floor(value)
  const isHalf = value - floor === 0.5
  return isHalf ? floor + (floor % 2) : Math.round(value)
}

export type Spacing = "leading" | "trailing" | "linspace"

/**
 * Training steps that are visited, falling (Lin et al. 2023, table 2). `further`: the last of so
 * many more, evenly spaced, is left out.
 */
export const spaced = (
  config: Metadata,
  steps: number,
  { byDefault, whole, further = 0 }: { byDefault: Spacing; whole: boolean; further?: 0 | 1 },
): readonly number[] => {
  const count = trainStepsIn(config)
  const kind = choiceOf(config, "timestep_spacing", ["leading", "trailing", "linspace"], byDefault)
  const offset = numberOr(config, "steps_offset", 0)
  const rising = Array.from({ length: steps + further }, (_, i) => i)
  if (kind === "trailing")
    return rising.slice(0, steps).map((i) => rounded(count - (i * count) / steps) - 1)
  const at =
    kind === "leading"
      ? (i: number) => i * Math.floor(count / rising.length) + offset
      : (i: number) => ((count - 1) * i) / Math.max(1, rising.length - 1)
  const values = rising.map(at).map((value) => (whole ? rounded(value) : value))
  return values.reverse().slice(0, steps)
}

/** What a denoiser predicts of x = signal * finished + noise * e. */
export type Prediction = "epsilon" | "v_prediction" | "sample"

export const predictionIn = (config: Metadata): Prediction =>
  choiceOf(config, "prediction_type", ["epsilon", "v_prediction", "sample"], "epsilon")

/** The finished latents that an output says, and the noise in them, where `signal^2 + noise^2 = 1`. */
export const separated = (
  prediction: Prediction,
  latents: Float32Array,
  output: Float32Array,
  { signal, noise }: { readonly signal: number; readonly noise: number },
): { readonly estimate: Float32Array; readonly error: () => Float32Array } => {
  switch (prediction) {
    case "epsilon":
      return {
        estimate: mixed(1 / signal, latents, -noise / signal, output),
        error: () => output,
      }
    case "v_prediction":
      return {
        estimate: mixed(signal, latents, -noise, output),
        error: () => mixed(signal, output, noise, latents),
      }
    default:
      return {
        estimate: output,
        error: () => mixed(1 / noise, latents, -signal / noise, output),
      }
  }
}

/** Limits the estimate where the configuration does. */
export const clippedIn = (config: Metadata, byDefault: boolean) => {
  if (!isOn(config, "clip_sample", byDefault)) return (estimate: Float32Array) => estimate
  const most = numberOr(config, "clip_sample_range", 1)
  return (estimate: Float32Array) => estimate.map((value) => Math.max(-most, Math.min(most, value)))
}

/** The level of noise relative to the signal's at a training step, also between two of them. */
export const levelAt = (levels: readonly number[], timestep: number): number => {
  const at = Math.max(0, Math.min(levels.length - 1, timestep))
  const low = Math.min(Math.floor(at), levels.length - 2)
  return levels[low]! + (levels[low + 1]! - levels[low]!) * (at - low)
}

export const levelsOf = (signal: readonly number[]): readonly number[] =>
  signal.map((part) => Math.sqrt((1 - part) / part))

/** Levels from the highest to the lowest as Karras et al. 2022 space them (rho = 7). */
export const karras = (highest: number, lowest: number, steps: number): readonly number[] =>
  even(highest ** (1 / 7), lowest ** (1 / 7), steps).map((root) => root ** 7)

/** The training step, between two, that has a level; levels rise. */
export const timestepOf = (levels: readonly number[], level: number): number => {
  const logs = levels.map(Math.log)
  const log = Math.log(Math.max(level, 1e-10))
  const above = logs.findIndex((value) => value > log)
  const low = Math.max(0, Math.min(above < 0 ? logs.length - 2 : above - 1, logs.length - 2))
  const part = (log - logs[low]!) / (logs[low + 1]! - logs[low]!)
  return low + Math.max(0, Math.min(1, part))
}

/** Adds noise at levels relative to the signal, where latents grow with the noise. */
export const scaledInput = (latents: Float32Array, level: number): Float32Array =>
  scaled(1 / Math.sqrt(level * level + 1), latents)
