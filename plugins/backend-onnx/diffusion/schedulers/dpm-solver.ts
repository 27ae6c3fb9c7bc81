import { countOr, type Metadata } from "../../weights/gguf-metadata.ts"
import { Unsupported } from "../../weights/model-file-error.ts"
import {
  karras,
  levelAt,
  levelsOf,
  predictionIn,
  separated,
  signalIn,
  spaced,
  timestepOf,
} from "./betas.ts"
import { lastLevel, leastSignal } from "./euler.ts"
import { choiceOf, isOn, mixed, refuseOn, type Schedule, type ScheduleRequest } from "./schedule.ts"

const refused = [
  "thresholding",
  "use_exponential_sigmas",
  "use_beta_sigmas",
  "use_lu_lambdas",
  "use_flow_sigmas",
  "use_dynamic_shifting",
]

const levelsIn = (config: Metadata, steps: number) => {
  const levels = levelsOf(signalIn(config, leastSignal))
  const last = lastLevel(config, levels)
  if (isOn(config, "use_karras_sigmas")) {
    const sigmas = karras(levels.at(-1)!, levels[0]!, steps)
    return {
      timesteps: sigmas.map((level) => Math.round(timestepOf(levels, level))),
      sigmas: [...sigmas, last],
    }
  }
  const timesteps = spaced(config, steps, { byDefault: "linspace", whole: true, further: 1 })
  return { timesteps, sigmas: [...timesteps.map((at) => levelAt(levels, at)), last] }
}

/** Signal and noise of variance 1 together, by their ratio. */
const weights = (level: number) => {
  const signal = 1 / Math.sqrt(level * level + 1)
  return { signal, noise: level * signal }
}

/** DPM-Solver++, second order, multistep, midpoint (Lu et al. 2022, arXiv:2211.01095). */
export const dpmSolver = (config: Metadata, { steps }: ScheduleRequest): Schedule => {
  refuseOn(config, ...refused)
  choiceOf(config, "algorithm_type", ["dpmsolver++"], "dpmsolver++")
  choiceOf(config, "solver_type", ["midpoint"], "midpoint")
  const order = countOr(config, "solver_order", 3, 2)
  if (order > 2) throw new Unsupported("'solver_order' is 3; this backend has 1 and 2")
  const prediction = predictionIn(config)
  const { timesteps, sigmas } = levelsIn(config, steps)
  const isShort = isOn(config, "lower_order_final", true) && steps < 15
  const endsFirst = isShort || isOn(config, "euler_at_final") || sigmas[steps] === 0
  let before: Float32Array | undefined
  return {
    timesteps,
    noiseScale: 1,
    input: (latents) => latents,
    next: (latents, output, step) => {
      const [now, then] = [sigmas[step]!, sigmas[step + 1]!]
      const { estimate } = separated(prediction, latents, output, weights(now))
      // exp(-h), where h is how far the logarithm of signal / noise goes
      const shrinks = then / now
      const isFirst = order === 1 || !before || (step === steps - 1 && endsFirst)
      const ratio = isFirst ? 0 : Math.log(now / then) / Math.log(sigmas[step - 1]! / now)
      const ahead = isFirst ? estimate : mixed(1 + ratio / 2, estimate, -ratio / 2, before!)
      before = estimate
      const { signal, noise } = weights(then)
      const kept = noise / weights(now).noise
      return {
        latents: mixed(kept, latents, signal * (1 - shrinks), ahead),
        estimate: () => estimate,
      }
    },
    noised: (latents, noise, step) => {
      const of = weights(sigmas[step]!)
      return mixed(of.signal, latents, of.noise, noise)
    },
  }
}
