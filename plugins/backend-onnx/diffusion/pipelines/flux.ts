import type { Adapter } from "../../../../core/ports/model.ts"
import { explaining } from "../../weights/model-file-error.ts"
import { Parts } from "../folder/part.ts"
import {
  openPipelineFolder,
  type PipelineFolder,
  partIn,
  schedulerIn,
} from "../folder/pipeline-folder.ts"
import { openAdapted } from "../lora/adapted-parts.ts"
import type { Condition, OpenImageModel, Pixels, Tensor } from "../model.ts"
import { clipEncoder } from "../text/clip-prompts.ts"
import { openT5Prompts } from "../text/t5-prompts.ts"
import { buildFluxTransformer, fluxConfig } from "../transformers/flux-transformer.ts"
import { openAutoencoder } from "../vae/autoencoder.ts"
import { patched, unpatched } from "./packing.ts"
import { pixelsOf, planesOf, resized, sizeOfArea } from "./pictures.ts"
import { previewBy } from "./small-latents.ts"
import { type Places, referenceCondition, tokenDenoiser } from "./token-denoiser.ts"

const graphVersion = 1
/** Tokens of a prompt that T5 reads. */
const promptTokens = 512

const placesOf = (axes: readonly number[]): Places => ({
  axes,
  theta: 10_000,
  text: () => [0, 0, 0],
  image: (row, column) => [0, row, column],
  reference: (index, row, column) => [1 + index, row, column],
})

const openAdaptedParts = async (parts: Parts, folder: PipelineFolder) => {
  const name = "transformer"
  const { path, config: json } = partIn(folder, name, ["FluxTransformer2DModel"])
  const config = explaining(path, () => fluxConfig(json))
  const clip = clipEncoder(folder, ["text_encoder", "tokenizer"])
  const { parts: own, info } = await openAdapted(parts, {
    text_encoder: clip.graph,
    denoiser: {
      name,
      path,
      key: ["flux", graphVersion, config],
      build: (building, progress) => buildFluxTransformer(building, config, progress),
    },
  })
  const places = placesOf(config.axes)
  const run = tokenDenoiser(own.denoiser, places)
  const denoise = async (
    latents: Tensor,
    timestep: number,
    condition: Condition,
    guidance?: number,
    adapter?: Adapter,
  ): Promise<Tensor> => {
    const scale = config.guidance ? guidance : undefined
    return unpatched(await run(patched(latents), timestep, condition, scale, adapter))
  }
  return { config, info, places, denoise, clip: clip.reads(own.text_encoder) }
}

/** FLUX.1 Kontext sees its source in every step; FLUX.1 starts from it. */
const kontext = "FluxKontextPipeline"

/** Opens a FluxPipeline or a FluxKontextPipeline. */
export const openFlux: OpenImageModel = async (path, host) => {
  const folder = openPipelineFolder(path)
  const parts = new Parts(host)
  const t5 = await openT5Prompts(parts, folder, ["text_encoder_2", "tokenizer_2"])
  const { config, info, places, denoise, clip } = await openAdaptedParts(parts, folder)
  const vae = await openAutoencoder(parts, folder, host)
  const multiple = 2 * vae.edge
  const isKontext = folder.family === kontext
  const encoded = async (
    picture: Pixels,
    { width, height }: Pick<Pixels, "width" | "height">,
    pause?: () => Promise<void>,
  ) => vae.encode(planesOf(await resized(picture, width, height)), pause)
  return {
    info: {
      ...info,
      family: folder.family,
      scheduler: schedulerIn(folder),
      multiple,
      guidance: config.guidance ? "input" : "none",
      sources: isKontext ? "seen" : "start",
      maxSources: 1,
      evenSigmas: true,
      roundsStepsUp: true,
    },
    latentShape: (width, height) => [
      1,
      config.channels / 4,
      2 * Math.floor(height / multiple),
      2 * Math.floor(width / multiple),
    ],
    tokensIn: ([, , rows, columns]) => (rows! * columns!) / 4,
    encodePrompt: async (prompt, adapter) => {
      const { pooled } = await clip(prompt, adapter)
      return { context: await t5(prompt, promptTokens), pooled }
    },
    encodeSources: async ([picture], width, height, pause) => {
      if (!picture) return { condition: {} }
      if (!isKontext)
        return { start: await encoded(picture, { width, height }, pause), condition: {} }
      // a reference keeps its proportions, in the area of the picture
      const size = sizeOfArea(picture, width * height, multiple)
      const map = patched(await encoded(picture, size, pause))
      return { condition: referenceCondition([map], places) }
    },
    denoise,
    decode: async (latents, pause) => pixelsOf(await vae.decode(latents, pause)),
    preview: previewBy(vae),
    close: () => parts.close(),
  }
}
