import { countOr, type Metadata, numberOr } from "../../weights/gguf-metadata.ts"
import { Damaged } from "../../weights/model-file-error.ts"
import { clippedIn, predictionIn, separated, signalIn, spaced, trainStepsIn } from "./betas.ts"
import { isOn, mixed, refuseOn, type Schedule, type ScheduleRequest } from "./schedule.ts"

const weights = (part: number) => ({ signal: Math.sqrt(part), noise: Math.sqrt(1 - part) })

const noisedBy =
  (signal: readonly number[], timesteps: readonly number[]): Schedule["noised"] =>
  (latents, noise, step) => {
    const of = weights(signal[timesteps[step]!]!)
    return mixed(of.signal, latents, of.noise, noise)
  }

/** Denoising diffusion implicit models (Song et al. 2020, arXiv:2010.02502), without new noise. */
export const ddim = (config: Metadata, { steps }: ScheduleRequest): Schedule => {
  refuseOn(config, "thresholding")
  const signal = signalIn(config)
  const prediction = predictionIn(config)
  const clipped = clippedIn(config, true)
  const timesteps = spaced(config, steps, { byDefault: "leading", whole: true }).map((timestep) =>
    Math.min(timestep, signal.length - 1),
  )
  const stride = Math.floor(trainStepsIn(config) / steps)
  const last = isOn(config, "set_alpha_to_one", true) ? 1 : signal[0]!
  return {
    timesteps,
    noiseScale: 1,
    input: (latents) => latents,
    next: (latents, output, step) => {
      const timestep = timesteps[step]!
      const now = weights(signal[timestep]!)
      const then = weights(timestep < stride ? last : signal[timestep - stride]!)
      const { estimate: free, error } = separated(prediction, latents, output, now)
      const estimate = clipped(free)
      return {
        latents: mixed(then.signal, estimate, then.noise, error()),
        estimate: () => estimate,
      }
    },
    noised: noisedBy(signal, timesteps),
  }
}

const dataDeviation = 0.5

/** The steps of the schedule that a consistency model was distilled from: it can't have more. */
export const originalStepsIn = (config: Metadata): number =>
  countOr(config, "original_inference_steps", trainStepsIn(config), 50)

/** Multistep sampling of a latent consistency model (Luo et al. 2023, arXiv:2310.04378). */
export const lcm = (config: Metadata, { steps }: ScheduleRequest): Schedule => {
  refuseOn(config, "thresholding")
  const signal = signalIn(config)
  const prediction = predictionIn(config)
  const clipped = clippedIn(config, false)
  const original = originalStepsIn(config)
  if (steps > original) throw new Damaged(`it was made for at most ${original} steps`)
  const stride = Math.floor(signal.length / original)
  const timesteps = Array.from(
    { length: steps },
    (_, i) => (original - Math.floor((i * original) / steps)) * stride - 1,
  )
  const scaling = numberOr(config, "timestep_scaling", 10)
  return {
    timesteps,
    noiseScale: 1,
    input: (latents) => latents,
    next: (latents, output, step, noise) => {
      const at = timesteps[step]! * scaling
      const { estimate: free } = separated(
        prediction,
        latents,
        output,
        weights(signal[timesteps[step]!]!),
      )
      const square = at * at + dataDeviation ** 2
      const estimate = mixed(
        at / Math.sqrt(square),
        clipped(free),
        dataDeviation ** 2 / square,
        latents,
      )
      if (step === steps - 1) return { latents: estimate, estimate: () => estimate }
      const then = weights(signal[timesteps[step + 1]!]!)
      return {
        latents: mixed(then.signal, estimate, then.noise, noise()),
        estimate: () => estimate,
      }
    },
    noised: noisedBy(signal, timesteps),
  }
}
