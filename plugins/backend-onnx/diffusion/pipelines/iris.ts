import { existsSync } from "node:fs"
import { join } from "node:path"
import sharp from "sharp"
import { configFile } from "../../architectures/folder-config.ts"
import { tokenizerIn } from "../../chat-format/embed-texts-job.ts"
import { encoderBatch } from "../../encoding/encoder-graph.ts"
import type { EncoderBuilding, EncoderModel } from "../../encoding/encoder-model.ts"
import { folderEncoder } from "../../encoding/families.ts"
import { floats, longs } from "../../onnx/onnx-session.ts"
import { explaining, ModelFileError, Unsupported } from "../../weights/model-file-error.ts"
import { Parts } from "../folder/part.ts"
import {
  openPipelineFolder,
  type PipelineFolder,
  partIn,
  schedulerIn,
  textEncoderId,
} from "../folder/pipeline-folder.ts"
import { buildIrisDecoder, irisDecoderConfig } from "../iris/iris-decoder.ts"
import { type GridTables, gridOf, gridTables } from "../iris/iris-grid.ts"
import type { IrisConfig } from "../iris/iris-layers.ts"
import { buildIrisTransformer, irisConfig } from "../iris/iris-transformer.ts"
import { joinedPatches, patchesOf, pictureOf } from "../iris/patches.ts"
import { type AdaptedPart, openAdapted } from "../lora/adapted-parts.ts"
import type {
  Condition,
  EncodedSources,
  ImageModel,
  OpenImageModel,
  Pixels,
  Tensor,
} from "../model.ts"
import { pixelsOf, planesOf } from "./pictures.ts"

/** Increment it whenever graphs built by earlier versions must be built again. */
const graphVersion = 2

// what the denoiser was trained with; longer prompts are cut
const mostTokens = 64
const multiple = 16
// for the few tokens of a canvas 8 bits are no faster, and what they round shows in the picture
const ownPrecision = "fp32"
// a picture is stretched to other proportions up to this ratio
const mostStretch = 1.15

/**
 * An encoder of sentences as a text encoder. In: `input_ids [1,S]`, `lengths [1]`. Out: `states
 * [1,S,width]`, those of the last layer.
 */
const buildTokenStates = (building: EncoderBuilding, model: EncoderModel): void => {
  const states = model.states(building, encoderBatch(building))
  building.graph.output("states", states, "float", [1, "S", model.config.width])
}

/** Opens the text encoder: the entry's adapter of that id, or the model's own folder. */
const openText = async (folder: PipelineFolder, parts: Parts, own: string | undefined) => {
  const inside = join(folder.path, textEncoderId)
  const path = own ?? (existsSync(join(inside, configFile)) ? inside : undefined)
  if (path === undefined)
    throw new ModelFileError(
      folder.path,
      "it has no text encoder",
      `Name the folder of all-MiniLM-L6-v2 as an adapter '${textEncoderId}' of the model`,
    )
  const { model } = folderEncoder(path)
  const part = await parts.open({
    name: textEncoderId,
    path,
    key: ["token states", graphVersion, model.config],
    build: (building) => buildTokenStates(building, model),
  })
  const encode = async (prompt: string): Promise<Tensor> => {
    const all = (await tokenizerIn(path).encode(prompt)).getIds()
    const ids = all.length > mostTokens ? [...all.slice(0, mostTokens - 1), all.at(-1)!] : all
    const { states } = await part.run({
      input_ids: longs([...ids], [1, ids.length]),
      lengths: longs([ids.length]),
    })
    return { data: Float32Array.from(states!.data as Float32Array), dims: states!.dims }
  }
  return { encode, width: model.config.width }
}

/** A picture stretched to a size; one of quite other proportions gets white edges instead. */
const fitted = async (picture: Pixels, width: number, height: number): Promise<Pixels> => {
  const { data, width: columns, height: rows } = picture
  if (columns === width && rows === height) return picture
  const ratio = (columns * height) / (rows * width)
  const resized = await sharp(data, { raw: { width: columns, height: rows, channels: 3 } })
    .resize({
      width,
      height,
      fit: Math.max(ratio, 1 / ratio) < mostStretch ? "fill" : "contain",
      background: "white",
      kernel: "lanczos3",
    })
    .raw()
    .toBuffer()
  return { data: resized, width, height }
}

/** The tables of grids; the last ones are kept, a few hundred KB each. */
const tablesBy = (config: IrisConfig) => {
  const known = new Map<string, GridTables>()
  return (rows: number, columns: number, copies: number): GridTables => {
    const key = `${rows}x${columns}x${copies}`
    const found =
      known.get(key) ??
      gridTables({ rows, columns }, copies, {
        frequencies: config.frequencies,
        headSize: config.width / config.heads,
        theta: config.theta,
        sketchGrid: config.sketchGrid,
      })
    if (known.size > 16) known.clear()
    known.set(key, found)
    return found
  }
}

/** The denoiser's step: the clean `latents [1,rows,columns,channels]`. */
const stepOf = (part: AdaptedPart, config: IrisConfig): ImageModel["denoise"] => {
  const tablesOf = tablesBy(config)
  return async (latents, timestep, { text, references }: Condition, _guidance, adapter) => {
    const [, rows, columns] = latents.dims as readonly [number, number, number]
    const count = rows * columns
    const all = joinedPatches(references ? [latents, references] : [latents])
    const total = all.dims[1]!
    const { places, cos, sin, across } = tablesOf(rows, columns, total / count)
    const feeds = {
      latents: floats(all.data, all.dims),
      pictures: longs(Array.from({ length: total }, (_, i) => Math.floor(i / count))),
      canvas: longs([count]),
      places: floats(places, [1, total, places.length / total]),
      cos: floats(cos, [total, cos.length / total]),
      sin: floats(sin, [total, sin.length / total]),
      across: floats(across, [total, across.length / total]),
      text: floats(text!.data, text!.dims),
      timestep: floats(Float32Array.of(timestep), [1]),
    }
    const { output } = await part.run(feeds, adapter)
    return { data: output!.data as Float32Array, dims: latents.dims }
  }
}

const openDecoder = async (folder: PipelineFolder, parts: Parts): Promise<ImageModel["decode"]> => {
  const { path, config: json } = partIn(folder, "decoder", ["IrisDecoder"])
  const config = explaining(join(path, configFile), () => irisDecoderConfig(json))
  const part = await parts.open({
    name: "decoder",
    path,
    key: ["iris decoder", graphVersion, config],
    build: (building) => buildIrisDecoder(building, config),
  })
  return async (latents) => {
    const { data, dims } = pictureOf(latents)
    const canvas = data.map((value) => Math.min(1, Math.max(-1, value)))
    const { pixels } = await part.run({ canvas: floats(canvas, dims) })
    return pixelsOf({ data: pixels!.data as Float32Array, dims: pixels!.dims })
  }
}

const openTransformer = async (folder: PipelineFolder, parts: Parts, textWidth: number) => {
  const { path, config: json } = partIn(folder, "transformer", ["IrisTransformer"])
  const config = explaining(join(path, configFile), () => {
    const read = irisConfig(json)
    if (read.textWidth === textWidth) return read
    throw new Unsupported(
      `it takes texts of ${read.textWidth} numbers a token, its text encoder makes ${textWidth}`,
    )
  })
  const { parts: own, info } = await openAdapted(parts, {
    denoiser: {
      name: "transformer",
      path,
      key: ["iris transformer", graphVersion, config],
      build: (building, progress) => buildIrisTransformer(building, config, progress),
    },
  })
  return { config, info, denoise: stepOf(own.denoiser, config) }
}

/**
 * Opens the default image model (plugins/model-iris), a folder in the layout of diffusers. Its
 * canvas is a grid of about 64 patches in the proportions asked for, and its decoder makes that
 * eight times as large.
 */
export const openIris: OpenImageModel = async (path, host) => {
  const folder = openPipelineFolder(path)
  const own = host.adapters.find(({ id }) => id === textEncoderId)
  const parts = new Parts({
    ...host,
    precision: host.precision === "auto" ? ownPrecision : host.precision,
    adapters: host.adapters.filter((other) => other !== own),
  })
  const text = await openText(folder, parts, own?.path)
  const { config, info, denoise } = await openTransformer(folder, parts, text.width)
  const decode = await openDecoder(folder, parts)
  const patchesIn = async (picture: Pixels, width: number, height: number): Promise<Tensor> => {
    const { rows, columns } = gridOf(width, height)
    const small = await fitted(picture, columns * config.patch, rows * config.patch)
    return patchesOf(planesOf(small), config.patch)
  }
  return {
    info: {
      ...info,
      family: folder.family,
      parts: own ? [own.id] : [],
      scheduler: schedulerIn(folder),
      multiple,
      guidance: "twice",
      sources: "seen",
      maxSources: config.maxReferences,
      evenSigmas: true,
    },
    latentShape: (width, height) => {
      const { rows, columns } = gridOf(width, height)
      return [1, rows, columns, config.channels]
    },
    tokensIn: ([, rows, columns]) => rows! * columns!,
    encodePrompt: async (prompt) => ({ text: await text.encode(prompt) }),
    encodeSources: async (pictures, width, height): Promise<EncodedSources> => {
      const all = await Promise.all(pictures.map((picture) => patchesIn(picture, width, height)))
      if (all.length === 0) return { condition: {} }
      return { start: all[0]!, condition: { references: joinedPatches(all) } }
    },
    denoise,
    decode,
    preview: async (latents) => pixelsOf(pictureOf(latents)),
    close: () => parts.close(),
  }
}
