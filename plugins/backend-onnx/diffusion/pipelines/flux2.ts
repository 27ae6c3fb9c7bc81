import { explaining } from "../../weights/model-file-error.ts"
import { Parts } from "../folder/part.ts"
import {
  openPipelineFolder,
  type PipelineFolder,
  partIn,
  schedulerIn,
} from "../folder/pipeline-folder.ts"
import { openAdapted } from "../lora/adapted-parts.ts"
import type { OpenImageModel, Pixels, Tensor } from "../model.ts"
import { openQwenPrompts } from "../text/qwen3-prompts.ts"
import { buildFlux2Transformer, flux2Config } from "../transformers/flux2-transformer.ts"
import { openAutoencoder } from "../vae/autoencoder.ts"
import { cropped, pixelsOf, planesOf, resized } from "./pictures.ts"
import { previewBy } from "./small-latents.ts"
import { type Places, referenceCondition, tokenDenoiser } from "./token-denoiser.ts"

const graphVersion = 1
/** Layers of the text encoder whose states are read, and tokens of a prompt. */
const promptStates = { taps: [9, 18, 27], length: 512 }
/** Larger references are shrunk to this area. */
const maxReferencePixels = 1024 * 1024
const maxSources = 5

/**
 * The shift of the schedule of FLUX.2, which its makers fitted (`compute_empirical_mu` in
 * https://github.com/black-forest-labs/flux2): linear in the tokens of the picture, and between 10
 * and 200 steps in the steps.
 */
export const empiricalShift = (tokens: number, steps: number): number => {
  const many = 0.00016927 * tokens + 0.45666666
  if (tokens > 4300) return many
  const few = 8.73809524e-5 * tokens + 1.89833333
  const slope = (many - few) / 190
  return slope * steps + many - 200 * slope
}

const placesOf = (axes: readonly number[], theta: number): Places => ({
  axes,
  theta,
  text: (token) => [0, 0, 0, token],
  image: (row, column) => [0, row, column, 0],
  reference: (index, row, column) => [10 + 10 * index, row, column, 0],
})

const openDenoiser = async (parts: Parts, folder: PipelineFolder) => {
  const name = "transformer"
  const { path, config: json } = partIn(folder, name, ["Flux2Transformer2DModel"])
  const config = explaining(path, () => flux2Config(json))
  const { parts: own, info } = await openAdapted(parts, {
    denoiser: {
      name,
      path,
      key: ["flux2", graphVersion, config],
      build: (building, progress) => buildFlux2Transformer(building, config, progress),
    },
  })
  const places = placesOf(config.axes, config.theta)
  return { config, info, places, denoise: tokenDenoiser(own.denoiser, places) }
}

/** References are seen as they are, cut to whole patches. */
const referencePicture = async (picture: Pixels, multiple: number): Promise<Pixels> => {
  const whole = (edge: number) => Math.max(multiple, Math.floor(edge / multiple) * multiple)
  const [width, height] = [whole(picture.width), whole(picture.height)]
  const fitted = await resized(
    picture,
    Math.max(width, picture.width),
    Math.max(height, picture.height),
  )
  return cropped(fitted, width, height)
}

/** Opens a Flux2KleinPipeline. */
export const openFlux2: OpenImageModel = async (path, host) => {
  const folder = openPipelineFolder(path)
  const parts = new Parts(host)
  const prompts = await openQwenPrompts(parts, folder, host.graphs, promptStates)
  const { config, info, places, denoise } = await openDenoiser(parts, folder)
  const vae = await openAutoencoder(parts, folder, host)
  const isDistilled = folder.setting("is_distilled") === true
  const twice = isDistilled ? "none" : "twice"
  return {
    info: {
      ...info,
      family: folder.family,
      scheduler: schedulerIn(folder),
      multiple: vae.edge,
      guidance: config.guidance ? "input" : twice,
      sources: "seen",
      maxSources,
      sourcePixels: maxReferencePixels,
      shiftOf: empiricalShift,
      evenSigmas: true,
    },
    latentShape: (width, height) => [
      1,
      config.channels,
      Math.floor(height / vae.edge),
      Math.floor(width / vae.edge),
    ],
    tokensIn: ([, , rows, columns]) => rows! * columns!,
    encodePrompt: async (prompt) => ({ context: await prompts(prompt) }),
    encodeSources: async (pictures, _width, _height, pause) => {
      const maps: Tensor[] = []
      for (const picture of pictures)
        maps.push(await vae.encode(planesOf(await referencePicture(picture, vae.edge)), pause))
      return { condition: referenceCondition(maps, places) }
    },
    denoise: (latents, timestep, condition, guidance, adapter) =>
      denoise(latents, timestep, condition, config.guidance ? guidance : undefined, adapter),
    decode: async (latents, pause) => pixelsOf(await vae.decode(latents, pause)),
    preview: previewBy(vae),
    close: () => parts.close(),
  }
}
