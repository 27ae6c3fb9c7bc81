import { floats } from "../../onnx/onnx-session.ts"
import { explaining, Unsupported } from "../../weights/model-file-error.ts"
import { Parts } from "../folder/part.ts"
import {
  openPipelineFolder,
  type PipelineFolder,
  partIn,
  schedulerIn,
} from "../folder/pipeline-folder.ts"
import { openAdapted } from "../lora/adapted-parts.ts"
import type { ImageModel, OpenImageModel, Tensor } from "../model.ts"
import { clipEncoder } from "../text/clip-prompts.ts"
import { unetConfig } from "../unet/unet-config.ts"
import { buildUnet, unetGraphVersion } from "../unet/unet-graph.ts"
import { openAutoencoder } from "../vae/autoencoder.ts"
import { pixelsOf, planesOf, resized } from "./pictures.ts"
import { previewBy } from "./small-latents.ts"

/**
 * The embedding of a guidance scale for a model that takes it (Luo et al., arXiv 2310.04378): sines
 * before cosines of a thousandfold of the scale less one, frequencies from 1 down to 1/10,000.
 */
export const guidanceEmbedding = (scale: number, length: number): Tensor => {
  const half = length >> 1
  const data = new Float32Array(length)
  for (let index = 0; index < half; index++) {
    const angle = 1000 * (scale - 1) * Math.exp((-Math.log(10_000) * index) / (half - 1))
    data[index] = Math.sin(angle)
    data[half + index] = Math.cos(angle)
  }
  return { data, dims: [1, length] }
}

const openAdaptedParts = async (parts: Parts, folder: PipelineFolder) => {
  const name = "unet"
  const { path, config: json } = partIn(folder, name, ["UNet2DConditionModel"])
  const config = explaining(path, () => {
    const read = unetConfig(json)
    if (read.inputs !== read.outputs)
      throw new Unsupported(
        `'in_channels' is ${read.inputs}: a model for masks or instructions, which this backend doesn't run`,
      )
    return read
  })
  const clip = clipEncoder(folder, ["text_encoder", "tokenizer"])
  const { parts: own, info } = await openAdapted(parts, {
    text_encoder: clip.graph,
    denoiser: {
      name,
      path,
      key: ["unet", unetGraphVersion, config],
      build: (building, progress) => buildUnet(building, config, progress),
    },
  })
  const feed = ({ data, dims }: Tensor) => floats(data, dims)
  const denoise: ImageModel["denoise"] = async (
    latents,
    timestep,
    { context },
    guidance = 1,
    adapter,
  ) => {
    const feeds = {
      latents: feed(latents),
      context: feed(context!),
      timestep: floats(Float32Array.of(timestep), [1]),
      ...(config.guidance && { guidance: feed(guidanceEmbedding(guidance, config.guidance)) }),
    }
    const { output } = await own.denoiser.run(feeds, adapter)
    return { data: output!.data as Float32Array, dims: output!.dims }
  }
  return { config, info, denoise, clip: clip.reads(own.text_encoder) }
}

/**
 * Opens a StableDiffusionPipeline of the generations 1 and 2 (Rombach et al., arXiv 2112.10752), or a
 * model distilled from one, such as a LatentConsistencyModelPipeline.
 */
export const openStableDiffusion: OpenImageModel = async (path, host) => {
  const folder = openPipelineFolder(path)
  const parts = new Parts(host)
  const { config, info, denoise, clip } = await openAdaptedParts(parts, folder)
  const vae = await openAutoencoder(parts, folder, host)
  const [channels, edge] = [config.inputs, vae.edge]
  return {
    info: {
      ...info,
      family: folder.family,
      scheduler: schedulerIn(folder),
      multiple: edge,
      guidance: config.guidance ? "input" : "twice",
      sources: "start",
      maxSources: 1,
    },
    latentShape: (width, height) => [
      1,
      channels,
      Math.floor(height / edge),
      Math.floor(width / edge),
    ],
    tokensIn: ([, , rows, columns]) => rows! * columns!,
    encodePrompt: async (prompt, adapter) => ({ context: (await clip(prompt, adapter)).states }),
    encodeSources: async ([picture], width, height, pause) =>
      picture
        ? {
            start: await vae.encode(planesOf(await resized(picture, width, height)), pause),
            condition: {},
          }
        : { condition: {} },
    denoise,
    decode: async (latents, pause) => pixelsOf(await vae.decode(latents, pause)),
    preview: previewBy(vae),
    close: () => parts.close(),
  }
}
