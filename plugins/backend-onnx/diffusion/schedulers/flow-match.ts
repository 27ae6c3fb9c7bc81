import { countOr, type Metadata, numberOr } from "../../weights/gguf-metadata.ts"
import { trainStepsIn } from "./betas.ts"
import { choiceOf, isOn, mixed, refuseOn, type Schedule, type ScheduleRequest } from "./schedule.ts"

const refused = [
  "use_karras_sigmas",
  "use_exponential_sigmas",
  "use_beta_sigmas",
  "invert_sigmas",
  "stochastic_sampling",
]

const maxTokens = 2 ** 24

/** A line through the shifts of a small and a large picture (Esser et al. 2024; FLUX). */
const shiftOfTokens = (config: Metadata, tokens: number): number => {
  const least = countOr(config, "base_image_seq_len", maxTokens, 256)
  const most = countOr(config, "max_image_seq_len", maxTokens, 4_096)
  const from = numberOr(config, "base_shift", 0.5)
  const to = numberOr(config, "max_shift", 1.15)
  return from + ((to - from) * (tokens - least)) / Math.max(1, most - least)
}

const shifted = (by: number, sigma: number): number => (by * sigma) / (1 + (by - 1) * sigma)

const shiftIn = (config: Metadata, { tokens, shift }: ScheduleRequest): number => {
  if (!isOn(config, "use_dynamic_shifting")) return numberOr(config, "shift", 1)
  const exponent = shift ?? shiftOfTokens(config, tokens)
  const type = choiceOf(config, "time_shift_type", ["exponential", "linear"], "exponential")
  return type === "exponential" ? Math.exp(exponent) : exponent
}

const sigmasIn = (config: Metadata, request: ScheduleRequest): readonly number[] => {
  const { steps, evenSigmas } = request
  const least = 1 / trainStepsIn(config)
  const isDynamic = isOn(config, "use_dynamic_shifting")
  // the levels of the training, which are shifted themselves unless the shift depends on the size
  const lowest = isDynamic ? least : shifted(numberOr(config, "shift", 1), least)
  const end = evenSigmas ? 1 / steps : lowest
  const by = shiftIn(config, request)
  const sigmas = Array.from({ length: steps }, (_, i) =>
    shifted(by, 1 - ((1 - end) * i) / Math.max(1, steps - 1)),
  )
  const terminal = numberOr(config, "shift_terminal", 0)
  // a single step begins at pure noise: there is nothing to stretch
  if (terminal === 0 || steps === 1) return [...sigmas, 0]
  const stretch = (1 - sigmas.at(-1)!) / (1 - terminal)
  return [...sigmas.map((sigma) => 1 - (1 - sigma) / stretch), 0]
}

/**
 * Euler's method along straight paths from noise (level 1) to a picture (level 0); Lipman et al.
 * 2022, Esser et al. 2024. The denoiser predicts the velocity, or with `prediction_type: sample`
 * the picture.
 */
export const flowMatch = (config: Metadata, request: ScheduleRequest): Schedule => {
  refuseOn(config, ...refused)
  const sigmas = sigmasIn(config, request)
  const count = trainStepsIn(config)
  const velocity =
    choiceOf(config, "prediction_type", ["velocity", "sample"], "velocity") === "velocity"
  return {
    timesteps: sigmas.slice(0, -1).map((sigma) => sigma * count),
    noiseScale: 1,
    input: (latents) => latents,
    next: (latents, output, step) => {
      const [now, then] = [sigmas[step]!, sigmas[step + 1]!]
      if (!velocity)
        return {
          latents: mixed(then / now, latents, 1 - then / now, output),
          estimate: () => output,
        }
      return {
        latents: mixed(1, latents, then - now, output),
        estimate: () => mixed(1, latents, -now, output),
      }
    },
    noised: (latents, noise, step) => mixed(1 - sigmas[step]!, latents, sigmas[step]!, noise),
  }
}
