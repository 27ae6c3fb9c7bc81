import { join } from "node:path"
import { Tensor } from "../../onnx/runtime.ts"
import { ggmlTypes } from "../../weights/ggml-types.ts"
import type { Metadata } from "../../weights/gguf-metadata.ts"
import { openSafetensors } from "../../weights/safetensors.ts"
import type { TensorSource } from "../../weights/tensor-file.ts"
import { seededNoise } from "../engine/noise.ts"
import type { PartBuilding } from "../graph/layers.ts"
import { buildFluxTransformer, fluxConfig } from "../transformers/flux-transformer.ts"
import { buildFlux2Transformer, flux2Config } from "../transformers/flux2-transformer.ts"
import { buildSd3Transformer, sd3Config } from "../transformers/sd3-transformer.ts"
import { diffusionFolder, partConfig } from "../transformers/testing/run-part.ts"
import { unetConfig } from "../unet/unet-config.ts"
import { buildUnet } from "../unet/unet-graph.ts"

export type Feeds = Readonly<Record<string, Tensor>>

/** A denoiser of random weights: that of a tiny checkpoint, `wider` times as wide. */
export interface WiderPart {
  readonly name: string
  readonly file: () => TensorSource
  build(building: PartBuilding): void
  /** Inputs of a step. */
  readonly feeds: () => Feeds
}

const weightsFile = "diffusion_pytorch_model.safetensors"

/** A config whose numbers under these keys are so many times as large. */
const widened = (json: Metadata, keys: readonly string[], wider: number): Metadata => {
  const grown = (value: unknown) =>
    Array.isArray(value) ? value.map((one: number) => one * wider) : Number(value) * wider
  return new Map<string, unknown>([
    ...json,
    ...keys.map((key) => [key, grown(json.get(key))] as const),
  ]) as Metadata
}

// drawn once, as a part has hundreds of millions of weights; rows begin at places of their own
const drawn = seededNoise(1)(2 ** 20 + 7)

/**
 * The tensors of a checkpoint with as many times the rows and columns: normal numbers that keep the
 * scale of signals. Sinusoids of timesteps and norms of heads keep their sizes.
 */
const widenedTensors = (path: string, wider: number, sinusoids: number): TensorSource => {
  const file = openSafetensors(path)
  const keepsSize = (name: string) => /\.norm_(added_)?[qk]\./.test(name)
  const f32 = ggmlTypes.get(0)!
  let row = 0
  return {
    path,
    names: () => file.names(),
    has: (name) => file.has(name),
    tensor: (name) => {
      const own = file.tensor(name)
      const rows = own.rows === 1 ? 1 : own.rows * wider
      const isTime = /(timestep|guidance)_embedder\.linear_1\.weight$/.test(name)
      const columns = (isTime && own.columns === sinusoids) || keepsSize(name) ? 1 : wider
      const size = { rows, columns: own.columns * columns }
      return { ...own, ...size, type: f32, bytes: 4 * size.rows * size.columns }
    },
    rows: ({ name, rows, columns, bytes }, _, count) => {
      const values = new Float32Array((count * bytes) / rows / 4)
      if (name === "pos_embed.pos_embed") return Buffer.from(values.fill(0.1).buffer)
      const isVector = rows === 1
      const [scale, mean] = isVector
        ? [0.1, name.endsWith("weight") ? 1 : 0]
        : [1 / Math.sqrt(columns), 0]
      for (let i = 0, at = (row++ * 7919) % drawn.length; i < values.length; i++, at++) {
        if (at === drawn.length) at = 0
        values[i] = mean + scale * drawn[at]!
      }
      return Buffer.from(values.buffer)
    },
    close: () => file.close(),
  }
}

export const noiseOf = (...dims: readonly number[]): Tensor =>
  new Tensor("float32", seededNoise(dims.length)(dims.reduce((a, b) => a * b)), dims)

export const number = (value: number): Tensor => new Tensor("float32", Float32Array.of(value), [1])

/** Rotary tables of random angles. */
const rotary = (tokens: number, half: number): Feeds => {
  const angles = seededNoise(3)(tokens * half)
  const of = (turn: (angle: number) => number) =>
    new Tensor("float32", angles.map(turn), [tokens, half])
  return { cos: of(Math.cos), sin: of(Math.sin) }
}

const [textTokens, imageTokens] = [77, 1024]
const tokenKeys = ["num_attention_heads", "in_channels", "joint_attention_dim"]

const unet = (wider: number): WiderPart => {
  const folder = diffusionFolder("sd", "unet")
  const keys = ["block_out_channels", "in_channels", "out_channels", "cross_attention_dim"]
  const config = unetConfig(widened(partConfig("sd", "unet"), keys, wider))
  return {
    name: "Stable Diffusion (UNet)",
    file: () => widenedTensors(join(folder, weightsFile), wider, 0),
    build: (building) => buildUnet(building, config),
    feeds: () => ({
      latents: noiseOf(1, config.inputs, 32, 32),
      context: noiseOf(1, textTokens, config.contextWidth),
      timestep: number(521),
    }),
  }
}

const sd3 = (wider: number): WiderPart => {
  const folder = diffusionFolder("sd3", "transformer")
  const keys = [...tokenKeys, "pooled_projection_dim", "out_channels", "caption_projection_dim"]
  const config = sd3Config(widened(partConfig("sd3", "transformer"), keys, wider))
  return {
    name: "Stable Diffusion 3 (MMDiT)",
    file: () => widenedTensors(join(folder, weightsFile), wider, 256),
    build: (building) => buildSd3Transformer(building, config),
    feeds: () => ({
      latents: noiseOf(1, config.channels, 24, 24),
      context: noiseOf(1, textTokens, config.contextWidth),
      pooled: noiseOf(1, config.pooledWidth),
      timestep: number(521),
    }),
  }
}

const flux = (wider: number): WiderPart => {
  const folder = diffusionFolder("flux", "transformer")
  const keys = [...tokenKeys, "pooled_projection_dim"]
  const config = fluxConfig(widened(partConfig("flux", "transformer"), keys, wider))
  return {
    name: "FLUX.1",
    file: () => widenedTensors(join(folder, weightsFile), wider, 256),
    build: (building) => buildFluxTransformer(building, config),
    feeds: () => ({
      latents: noiseOf(1, imageTokens, config.channels),
      context: noiseOf(1, textTokens, config.contextWidth),
      pooled: noiseOf(1, config.pooledWidth),
      timestep: number(521),
      guidance: number(3.5),
      ...rotary(textTokens + imageTokens, config.width / config.heads / 2),
    }),
  }
}

const flux2 = (wider: number): WiderPart => {
  const folder = diffusionFolder("flux2", "transformer")
  const config = flux2Config(widened(partConfig("flux2", "transformer"), tokenKeys, wider))
  return {
    name: "FLUX.2",
    file: () => widenedTensors(join(folder, weightsFile), wider, config.sinusoids),
    build: (building) => buildFlux2Transformer(building, config),
    feeds: () => ({
      latents: noiseOf(1, imageTokens, config.channels),
      context: noiseOf(1, textTokens, config.contextWidth),
      timestep: number(521),
      ...rotary(textTokens + imageTokens, config.width / config.heads / 2),
    }),
  }
}

/** A denoiser of each family, so many times as wide as its tiny checkpoint. */
export const widerParts = (wider: number): readonly WiderPart[] => [
  unet(wider),
  sd3(wider),
  flux(wider),
  flux2(wider),
]
