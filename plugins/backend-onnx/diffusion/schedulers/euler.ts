import type { Metadata } from "../../weights/gguf-metadata.ts"
import {
  karras,
  levelAt,
  levelsOf,
  type Prediction,
  predictionIn,
  scaledInput,
  signalIn,
  spaced,
  timestepOf,
} from "./betas.ts"
import { choiceOf, isOn, mixed, refuseOn, type Schedule, type ScheduleRequest } from "./schedule.ts"

/** Stands for no signal at all, by which levels can't be divided. */
export const leastSignal = 2 ** -24

/** The finished latents that an output says, where latents are the finished ones and noise. */
const estimateOf = (
  prediction: Prediction,
  latents: Float32Array,
  output: Float32Array,
  level: number,
): Float32Array => {
  if (prediction === "sample") return output
  if (prediction === "epsilon") return mixed(1, latents, -level, output)
  const square = level * level + 1
  return mixed(1 / square, latents, -level / Math.sqrt(square), output)
}

/** The lowest level that a schedule ends at. */
export const lastLevel = (config: Metadata, levels: readonly number[]): number =>
  choiceOf(config, "final_sigmas_type", ["zero", "sigma_min"], "zero") === "zero" ? 0 : levels[0]!

const levelsIn = (config: Metadata, steps: number) => {
  const levels = levelsOf(signalIn(config, leastSignal))
  const even = spaced(config, steps, { byDefault: "linspace", whole: false })
  const sigmas = even.map((timestep) => levelAt(levels, timestep))
  if (!isOn(config, "use_karras_sigmas"))
    return { timesteps: even, sigmas: [...sigmas, lastLevel(config, levels)] }
  const spread = karras(sigmas[0]!, sigmas.at(-1)!, steps)
  return {
    timesteps: spread.map((level) => timestepOf(levels, level)),
    sigmas: [...spread, lastLevel(config, levels)],
  }
}

const eulerOf = (
  config: Metadata,
  {
    timesteps,
    sigmas,
  }: { readonly timesteps: readonly number[]; readonly sigmas: readonly number[] },
  next: (
    latents: Float32Array,
    estimate: Float32Array,
    levels: { readonly now: number; readonly after: number },
    noise: () => Float32Array,
  ) => Float32Array,
): Schedule => {
  const prediction = predictionIn(config)
  const highest = Math.max(...sigmas)
  const isLeading =
    choiceOf(config, "timestep_spacing", ["leading", "trailing", "linspace"], "linspace") ===
    "leading"
  return {
    timesteps,
    noiseScale: isLeading ? Math.sqrt(highest * highest + 1) : highest,
    input: (latents, step) => scaledInput(latents, sigmas[step]!),
    next: (latents, output, step, noise) => {
      const now = sigmas[step]!
      const estimate = estimateOf(prediction, latents, output, now)
      const levels = { now, after: sigmas[step + 1]! }
      return { latents: next(latents, estimate, levels, noise), estimate: () => estimate }
    },
    noised: (latents, noise, step) => mixed(1, latents, sigmas[step]!, noise),
  }
}

const unknown = ["use_exponential_sigmas", "use_beta_sigmas"]

/** Euler's method over the levels (Karras et al. 2022, algorithm 2, without churn). */
export const euler = (config: Metadata, { steps }: ScheduleRequest): Schedule => {
  refuseOn(config, ...unknown)
  choiceOf(config, "interpolation_type", ["linear"], "linear")
  choiceOf(config, "timestep_type", ["discrete"], "discrete")
  return eulerOf(config, levelsIn(config, steps), (latents, estimate, { now, after }) =>
    mixed(after / now, latents, 1 - after / now, estimate),
  )
}

/** Euler's method that goes further down and adds new noise after each step. */
export const eulerAncestral = (config: Metadata, { steps }: ScheduleRequest): Schedule => {
  const plain = new Map([...config].filter(([key]) => !/karras|final_sigmas/.test(key)))
  return eulerOf(plain, levelsIn(plain, steps), (latents, estimate, { now, after }, noise) => {
    const up = Math.sqrt((after ** 2 * (now ** 2 - after ** 2)) / now ** 2)
    const down = Math.sqrt(after ** 2 - up ** 2)
    const plainly = mixed(down / now, latents, 1 - down / now, estimate)
    return up === 0 ? plainly : mixed(1, plainly, up, noise())
  })
}
