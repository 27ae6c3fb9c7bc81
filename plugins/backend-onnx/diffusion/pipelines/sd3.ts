import type { Adapter } from "../../../../core/ports/model.ts"
import { floats } from "../../onnx/onnx-session.ts"
import { explaining } from "../../weights/model-file-error.ts"
import { Parts } from "../folder/part.ts"
import {
  openPipelineFolder,
  type PipelineFolder,
  partIn,
  schedulerIn,
} from "../folder/pipeline-folder.ts"
import { openAdapted } from "../lora/adapted-parts.ts"
import type { Condition, OpenImageModel, Tensor } from "../model.ts"
import { clipEncoder } from "../text/clip-prompts.ts"
import { openT5Prompts } from "../text/t5-prompts.ts"
import { buildSd3Transformer, sd3Config } from "../transformers/sd3-transformer.ts"
import { openAutoencoder } from "../vae/autoencoder.ts"
import { joinedTokens } from "./packing.ts"
import { pixelsOf, planesOf, resized } from "./pictures.ts"
import { previewBy } from "./small-latents.ts"

const graphVersion = 1
/** Tokens of a prompt that T5 reads. */
const promptTokens = 256

const openAdaptedParts = async (parts: Parts, folder: PipelineFolder) => {
  const name = "transformer"
  const { path, config: json } = partIn(folder, name, ["SD3Transformer2DModel"])
  const config = explaining(path, () => sd3Config(json))
  const clip = clipEncoder(folder, ["text_encoder", "tokenizer"])
  const clip2 = clipEncoder(folder, ["text_encoder_2", "tokenizer_2"])
  const { parts: own, info } = await openAdapted(parts, {
    text_encoder: clip.graph,
    text_encoder_2: clip2.graph,
    denoiser: {
      name,
      path,
      key: ["sd3", graphVersion, config],
      build: (building, progress) => buildSd3Transformer(building, config, progress),
    },
  })
  const feed = ({ data, dims }: Tensor) => floats(data, dims)
  const denoise = async (
    latents: Tensor,
    timestep: number,
    { context, pooled }: Condition,
    _guidance?: number,
    adapter?: Adapter,
  ): Promise<Tensor> => {
    const feeds = {
      latents: feed(latents),
      context: feed(context!),
      pooled: feed(pooled!),
      timestep: floats(Float32Array.of(timestep), [1]),
    }
    const { output } = await own.denoiser.run(feeds, adapter)
    return { data: output!.data as Float32Array, dims: output!.dims }
  }
  return {
    config,
    info,
    denoise,
    clip: clip.reads(own.text_encoder),
    clip2: clip2.reads(own.text_encoder_2),
  }
}

/** States of two encoders side by side, with zeros up to `width`: `[1,S,width]`. */
const beside = (first: Tensor, second: Tensor, width: number): Tensor => {
  const count = first.dims[1]!
  const data = new Float32Array(count * width)
  for (const [{ data: values, dims }, from] of [
    [first, 0],
    [second, first.dims[2]!],
  ] as const) {
    const own = dims[2]!
    for (let token = 0; token < count; token++)
      data.set(values.subarray(token * own, (token + 1) * own), token * width + from)
  }
  return { data, dims: [1, count, width] }
}

const joinedVectors = (first: Tensor, second: Tensor): Tensor => {
  const data = Float32Array.from([...first.data, ...second.data])
  return { data, dims: [1, data.length] }
}

/** The states of T5, or zeros where the pipeline has none. */
const openLongPrompts = async (parts: Parts, folder: PipelineFolder, width: number) => {
  if (folder.classOf("text_encoder_3") !== undefined)
    return openT5Prompts(parts, folder, ["text_encoder_3", "tokenizer_3"])
  return (_: string, tokens: number): Promise<Tensor> =>
    Promise.resolve({ data: new Float32Array(tokens * width), dims: [1, tokens, width] })
}

/** Opens a StableDiffusion3Pipeline (Esser et al., arXiv 2403.03206). */
export const openSd3: OpenImageModel = async (path, host) => {
  const folder = openPipelineFolder(path)
  const parts = new Parts(host)
  const { config, info, denoise, clip, clip2 } = await openAdaptedParts(parts, folder)
  const t5 = await openLongPrompts(parts, folder, config.contextWidth)
  const vae = await openAutoencoder(parts, folder, host)
  const multiple = config.patch * vae.edge
  return {
    info: {
      ...info,
      family: folder.family,
      scheduler: schedulerIn(folder),
      multiple,
      guidance: "twice",
      sources: "start",
      maxSources: 1,
      maxSide: config.positions * multiple,
      roundsStepsUp: true,
    },
    latentShape: (width, height) => [
      1,
      config.channels,
      Math.floor(height / vae.edge),
      Math.floor(width / vae.edge),
    ],
    tokensIn: ([, , rows, columns]) => (rows! * columns!) / config.patch ** 2,
    encodePrompt: async (prompt, adapter) => {
      const [first, second] = [await clip(prompt, adapter), await clip2(prompt, adapter)]
      const short = beside(first.penultimate, second.penultimate, config.contextWidth)
      return {
        context: joinedTokens([short, await t5(prompt, promptTokens)]),
        pooled: joinedVectors(first.pooled, second.pooled),
      }
    },
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
