import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Precision } from "../../../onnx/linear.ts"
import type { Condition, ImageModel, OpenImageModel, Pixels, Tensor } from "../../model.ts"
import { openSchedule } from "../../schedulers/open-schedule.ts"
import { expectedTensors } from "../../transformers/testing/run-part.ts"

/** The steps of a reference: noise levels, one more than timesteps. */
export interface Steps {
  readonly timesteps: readonly number[]
  readonly sigmas: readonly number[]
}

/** Opens a fixture's folder, in 32 bits by default, runs `use`, and closes the model. */
export const withModel = async <A>(
  open: OpenImageModel,
  folder: string,
  use: (model: ImageModel) => Promise<A>,
  options: {
    readonly offload?: boolean
    readonly precision?: Precision
    readonly adapters?: readonly { readonly id: string; readonly path: string }[]
  } = {},
): Promise<A> => {
  const graphs = mkdtempSync(join(tmpdir(), "rakit-pipelines-"))
  try {
    const model = await open(folder, {
      graphs,
      threads: 1,
      precision: options.precision ?? "fp32",
      offload: options.offload === true,
      tileSize: 1024,
      adapters: options.adapters ?? [],
      adapterBytes: 2 ** 24,
      progress: () => {},
    })
    try {
      return await use(model)
    } finally {
      await model.close()
    }
  } finally {
    rmSync(graphs, { recursive: true, force: true })
  }
}

/** Bytes of a reference's source. */
export const sourceIn = (family: string, name: string): Pixels => {
  const { bytes, dims } = expectedTensors(family).bytes(name)
  return { data: bytes, width: dims[1]!, height: dims[0]! }
}

/** The timesteps that the engine would run for a picture. */
export const scheduled = (
  { info, tokensIn, latentShape }: ImageModel,
  { width, height }: { readonly width: number; readonly height: number },
  steps: number,
): readonly number[] => {
  const tokens = tokensIn(latentShape(width, height))
  const shift = info.shiftOf?.(tokens, steps)
  const { timesteps } = openSchedule(info.scheduler, {
    ...{ steps, tokens, evenSigmas: info.evenSigmas === true },
    ...(shift !== undefined && { shift }),
  })
  return timesteps
}

interface Drawing extends Steps {
  readonly latents: Tensor
  readonly condition: Condition
  /** The condition without the prompt, and the scale of guidance. */
  readonly without?: readonly [Condition, number]
  readonly guidance?: number
}

/** Euler steps along the velocity, as a flow-match schedule does them. */
export const latentsOf = async (
  model: ImageModel,
  { latents: { data, dims }, condition, without, guidance, timesteps, sigmas }: Drawing,
): Promise<Tensor> => {
  let latents: Tensor = { data, dims }
  for (const [step, timestep] of timesteps.entries()) {
    const wanted = await model.denoise(latents, timestep, condition, guidance)
    const plain = without && (await model.denoise(latents, timestep, without[0]))
    const velocity = plain
      ? plain.data.map((value, i) => value + without[1] * (wanted.data[i]! - value))
      : wanted.data
    const change = sigmas[step + 1]! - sigmas[step]!
    latents = { dims, data: latents.data.map((value, i) => value + change * velocity[i]!) }
  }
  return latents
}

/** Latents of a source with noise of a level. */
export const noised = (start: Tensor, noise: Tensor, sigma: number): Tensor => ({
  dims: start.dims,
  data: start.data.map((value, i) => sigma * noise.data[i]! + (1 - sigma) * value),
})

/** The largest difference to a reference `[1,3,h,w]` from 0 to 1, in steps of 8 bits. */
export const gapInBytes = ({ data, width, height }: Pixels, { data: wanted, dims }: Tensor) => {
  if (dims[2] !== height || dims[3] !== width) throw new Error("pictures of other sizes")
  const count = width * height
  return data.reduce(
    (most, value, i) =>
      Math.max(most, Math.abs(value - 255 * wanted[(i % 3) * count + Math.floor(i / 3)]!)),
    0,
  )
}
