import type { Metadata } from "../../weights/gguf-metadata.ts"
import { Unsupported } from "../../weights/model-file-error.ts"

/** What a step makes of latents. */
export interface Denoised {
  readonly latents: Float32Array
  /** The finished latents, as far as this step can tell: what previews show. */
  estimate(): Float32Array
}

/** The noise levels of one picture, and the steps between them. One job's own: it keeps state. */
export interface Schedule {
  /** The denoiser's timesteps, one for each step. */
  readonly timesteps: readonly number[]
  /** The standard deviation of the noise that a picture begins with. */
  readonly noiseScale: number
  /** What the denoiser sees of latents at a step. */
  input(latents: Float32Array, step: number): Float32Array
  /** `noise` returns new noise, for the schedules that add some on the way. */
  next(
    latents: Float32Array,
    output: Float32Array,
    step: number,
    noise: () => Float32Array,
  ): Denoised
  /** Finished latents with as much noise as a picture has before a step. */
  noised(latents: Float32Array, noise: Float32Array, step: number): Float32Array
}

/** What a schedule depends on beside its configuration. */
export interface ScheduleRequest {
  readonly steps: number
  /** Tokens or patches of the latents. */
  readonly tokens: number
  /** The exponent of a dynamic shift, where the model's family has a formula of its own. */
  readonly shift?: number
  /** Levels are even from 1 to 1 / steps before they are shifted. */
  readonly evenSigmas?: boolean
}

/** Returns a x + b y. */
export const mixed = (a: number, x: Float32Array, b: number, y: Float32Array): Float32Array => {
  const sum = new Float32Array(x.length)
  for (let i = 0; i < sum.length; i++) sum[i] = a * x[i]! + b * y[i]!
  return sum
}

/** Returns a x. A loop, as `map` takes several times as long. */
export const scaled = (a: number, x: Float32Array): Float32Array => {
  const product = new Float32Array(x.length)
  for (let i = 0; i < product.length; i++) product[i] = a * x[i]!
  return product
}

export const isOn = (config: Metadata, key: string, byDefault = false): boolean =>
  (config.get(key) ?? byDefault) === true

/** Refuses settings that would make other pictures than the model's authors meant. */
export const refuseOn = (config: Metadata, ...keys: readonly string[]): void => {
  for (const key of keys)
    if (isOn(config, key)) throw new Unsupported(`'${key}' is a setting that this backend has not`)
}

/** Reads one of several names. */
export const choiceOf = <Name extends string>(
  config: Metadata,
  key: string,
  names: readonly Name[],
  byDefault: Name,
): Name => {
  const value = config.get(key) ?? byDefault
  const name = names.find((known) => known === value)
  if (name === undefined)
    throw new Unsupported(`'${key}' is ${String(value)}; this backend has ${names.join(", ")}`)
  return name
}
