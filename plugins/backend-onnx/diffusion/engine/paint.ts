import type { Adapter } from "../../../../core/ports/model.ts"
import type { Condition, EncodedSources, ImageModel, Pixels, Tensor } from "../model.ts"
import { openSchedule } from "../schedulers/open-schedule.ts"
import { mixed, type Schedule } from "../schedulers/schedule.ts"
import type { ImageJobEvent, ImageJobRequest } from "./image-job.ts"
import { seededNoise } from "./noise.ts"

/** The model, and what all of its jobs share. */
export interface Painter {
  readonly model: ImageModel
  /** The condition of an empty prompt, for guidance; a LoRA may change it, too. */
  unprompted(adapter?: Adapter): Promise<Condition>
}

/** Conditions of the empty prompt that are kept: with the last LoRAs, and without. */
const maxEmpty = 4

/** Encodes empty prompts of a model, and keeps some of them. */
export const unpromptedOf = (model: ImageModel): Painter["unprompted"] => {
  const kept = new Map<string, Promise<Condition>>()
  return (adapter) => {
    const key = adapter ? `${adapter.id} ${adapter.strength}` : ""
    const condition = kept.get(key) ?? model.encodePrompt("", adapter)
    kept.delete(key)
    kept.set(key, condition)
    // a failure is that of one request, not of all that come after it
    condition.catch(() => kept.delete(key))
    if (kept.size > maxEmpty) kept.delete(kept.keys().next().value!)
    return condition
  }
}

interface Canvas {
  readonly width: number
  readonly height: number
}

/** What a picture is made from, the same in every step. */
interface Conditions {
  readonly prompted: Condition
  /** Absent: no classifier-free guidance. */
  readonly unprompted?: Condition | undefined
  readonly sources?: EncodedSources | undefined
}

type Pause = () => Promise<void>

const roundedUp = (value: number, multiple: number): number =>
  Math.ceil(value / multiple) * multiple

/** The number of steps that an edit of some strength runs of those of its request. */
export const stepsOf = (steps: number, strength: number, roundsUp = false): number => {
  if (strength <= 0) return 0
  const asked = steps * strength
  // not Math.ceil: the difference is rounded as diffusers does it, also where floats are inexact
  const whole = roundsUp ? steps - Math.trunc(Math.max(steps - asked, 0)) : Math.floor(asked)
  return Math.min(steps, Math.max(1, whole))
}

const encoded = async (
  { model, unprompted }: Painter,
  { prompt, sources, guidanceScale, adapter }: ImageJobRequest,
  { width, height }: Canvas,
  pause: Pause,
): Promise<Conditions> => {
  const prompted = await model.encodePrompt(prompt, adapter)
  await pause()
  const isGuided = model.info.guidance === "twice" && guidanceScale > 1
  const without = isGuided ? await unprompted(adapter) : undefined
  if (sources.length === 0) return { prompted, unprompted: without }
  await pause()
  return {
    prompted,
    unprompted: without,
    sources: await model.encodeSources(sources, width, height, pause),
  }
}

/** Runs the denoiser at one step, twice with classifier-free guidance (Ho and Salimans 2022). */
const predicted = async (
  model: ImageModel,
  { prompted, unprompted, sources }: Conditions,
  latents: Tensor,
  timestep: number,
  { guidanceScale, adapter }: ImageJobRequest,
  pause: Pause,
): Promise<Float32Array> => {
  const seen = sources?.condition ?? {}
  const run = (condition: Condition) =>
    model.denoise(latents, timestep, { ...condition, ...seen }, guidanceScale, adapter)
  const { data } = await run(prompted)
  if (!unprompted) return data
  await pause()
  const { data: plain } = await run(unprompted)
  return mixed(guidanceScale, data, 1 - guidanceScale, plain)
}

/** Whether a preview is due after a step: they are spread evenly over those before the last. */
const isShown = (step: number, steps: number, previews: number): boolean => {
  const parts = previews + 1
  return (
    step < steps && Math.floor((step * parts) / steps) > Math.floor(((step - 1) * parts) / steps)
  )
}

interface Start {
  readonly schedule: Schedule
  readonly dims: readonly number[]
  readonly noise: () => Float32Array
  readonly first: number
  readonly latents: Float32Array
}

/** The latents that the first step sees. */
const started = (
  model: ImageModel,
  request: ImageJobRequest,
  conditions: Conditions,
  canvas: Canvas,
): Start => {
  const { info } = model
  const dims = model.latentShape(canvas.width, canvas.height)
  const length = dims.reduce((product, size) => product * size, 1)
  const draw = seededNoise(request.seed)
  const noise = () => draw(length)
  const { steps, strength = 1 } = request
  const tokens = model.tokensIn(dims)
  const shift = info.shiftOf?.(tokens, steps)
  const schedule = openSchedule(info.scheduler, {
    steps,
    tokens,
    ...(shift !== undefined && { shift }),
    ...(info.evenSigmas && { evenSigmas: true }),
  })
  const own = noise()
  const source = conditions.sources?.start
  const first = source ? steps - stepsOf(steps, strength, info.roundsStepsUp) : 0
  if (!source || (first === 0 && strength >= 1)) {
    const latents = own.map((value) => value * schedule.noiseScale)
    return { schedule, dims, noise, first: 0, latents }
  }
  const latents = first === steps ? source.data : schedule.noised(source.data, own, first)
  return { schedule, dims, noise, first, latents }
}

const requireFinite = (latents: Float32Array): void => {
  // a loop, as `every` takes forty times as long
  for (let i = 0; i < latents.length; i++)
    if (!Number.isFinite(latents[i]!))
      throw new Error("the denoiser's numbers went out of bounds: use a higher precision")
}

const previewOf = (
  model: ImageModel,
  latents: Tensor,
  { previewSide }: ImageJobRequest,
  pause: Pause,
): Promise<Pixels> =>
  model.preview && previewSide !== undefined
    ? model.preview(latents, previewSide, pause)
    : model.decode(latents, pause)

const denoised = async (
  { model }: Painter,
  request: ImageJobRequest,
  conditions: Conditions,
  { schedule, dims, noise, first, latents: from }: Start,
  emit: (event: ImageJobEvent) => void,
  pause: Pause,
): Promise<Tensor> => {
  let latents = from
  const steps = schedule.timesteps.length - first
  for (let index = first; index < schedule.timesteps.length; index++) {
    const input = { data: schedule.input(latents, index), dims }
    const timestep = schedule.timesteps[index]!
    const output = await predicted(model, conditions, input, timestep, request, pause)
    const next = schedule.next(latents, output, index, noise)
    latents = next.latents
    requireFinite(latents)
    const step = index - first + 1
    await pause()
    const preview = isShown(step, steps, request.previews ?? 0)
      ? await previewOf(model, { data: next.estimate(), dims }, request, pause)
      : undefined
    emit({ type: "step", step, steps, ...(preview && { preview }) })
  }
  return { data: latents, dims }
}

/**
 * Makes one picture: encodes the prompt and the sources, denoises, decodes. It pauses between the
 * runs of the model, where others have their turn. The same request gives the same bytes, whoever
 * runs beside it: nothing is shared but the model.
 */
export const paint = async (
  painter: Painter,
  request: ImageJobRequest,
  emit: (event: ImageJobEvent) => void,
  pause: Pause,
): Promise<void> => {
  const { model } = painter
  const { multiple } = model.info
  const canvas = {
    width: roundedUp(request.width, multiple),
    height: roundedUp(request.height, multiple),
  }
  let sinceMs = performance.now()
  const stage = (name: "encode" | "denoise" | "decode") => {
    const nowMs = performance.now()
    emit({ type: "time", stage: name, durationMs: nowMs - sinceMs })
    sinceMs = nowMs
  }
  const conditions = await encoded(painter, request, canvas, pause)
  stage("encode")
  await pause()
  const start = started(model, request, conditions, canvas)
  const latents = await denoised(painter, request, conditions, start, emit, pause)
  stage("denoise")
  const picture = await model.decode(latents, pause)
  stage("decode")
  emit({ type: "picture", picture })
}
