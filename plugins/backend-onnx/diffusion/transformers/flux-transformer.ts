import type { Value } from "../../onnx/graph-builder.ts"
import { countIn, countOr, type Metadata } from "../../weights/gguf-metadata.ts"
import { Damaged } from "../../weights/model-file-error.ts"
import { embedded, linear, type PartBuilding, sinusoids } from "../graph/layers.ts"
import { axesIn } from "./rotary-positions.ts"
import {
  attended,
  divided,
  feedForward,
  gatedSum,
  joined,
  modulated,
  modulation,
  projected,
  type Rotary,
  tokensOf,
  triple,
} from "./streams.ts"

/** Sizes of a FluxTransformer2DModel. */
export interface FluxConfig {
  /** Numbers of a token: those of a patch of latents. */
  readonly channels: number
  readonly blocks: number
  readonly singleBlocks: number
  readonly heads: number
  readonly width: number
  readonly contextWidth: number
  readonly pooledWidth: number
  /** Guidance is an input of a distilled model. */
  readonly guidance: boolean
  /** Rotated dimensions of a head, by axis of a token's position. */
  readonly axes: readonly number[]
}

export const fluxConfig = (json: Metadata): FluxConfig => {
  const heads = countIn(json, "num_attention_heads", 1024)
  const headSize = countIn(json, "attention_head_dim", 1024)
  const axes = axesIn(json, "axes_dims_rope", [16, 56, 56], headSize)
  if (axes.length !== 3) throw new Damaged(`'axes_dims_rope' has ${axes.length} axes in place of 3`)
  return {
    channels: countIn(json, "in_channels", 65_536),
    blocks: countIn(json, "num_layers", 512),
    singleBlocks: countOr(json, "num_single_layers", 512, 38),
    heads,
    width: heads * headSize,
    contextWidth: countIn(json, "joint_attention_dim", 65_536),
    pooledWidth: countIn(json, "pooled_projection_dim", 65_536),
    guidance: (json.get("guidance_embeds") as unknown) === true,
    axes,
  }
}

/** The streams of tokens of text and picture, `[1,T,width]` and `[1,S,width]`. */
interface Streams {
  readonly text: Value
  readonly image: Value
}

const doubleBlock = (
  building: PartBuilding,
  config: FluxConfig,
  name: string,
  { text, image }: Streams,
  embedding: Value,
  rotary: Rotary,
): Streams => {
  const { width } = config
  const attn = `${name}.attn`
  const mods = (part: string) => {
    const [shift, scale, gate, shift2, scale2, gate2] = modulation(
      building,
      `${name}.${part}.linear`,
      embedding,
      width,
      6,
    )
    return {
      first: { shift: shift!, scale: scale!, gate: gate! },
      second: { shift: shift2!, scale: scale2!, gate: gate2! },
    }
  }
  const [ofImage, ofText] = [mods("norm1"), mods("norm1_context")]
  const imageTriple = triple(
    building,
    [`${attn}.to_q`, `${attn}.to_k`, `${attn}.to_v`],
    [`${attn}.norm_q`, `${attn}.norm_k`],
    modulated(building, image, ofImage.first),
    config,
  )
  const textTriple = triple(
    building,
    [`${attn}.add_q_proj`, `${attn}.add_k_proj`, `${attn}.add_v_proj`],
    [`${attn}.norm_added_q`, `${attn}.norm_added_k`],
    modulated(building, text, ofText.first),
    config,
  )
  const all = attended(building, joined(building, textTriple, imageTriple), config, rotary)
  const [forText, forImage] = divided(building, all, tokensOf(building, text))
  const finished = (
    x: Value,
    attention: Value,
    [out, ff]: readonly [string, string],
    { first, second }: ReturnType<typeof mods>,
  ): Value => {
    const square = { rows: width, columns: width }
    const added = gatedSum(building, x, first.gate, linear(building, out, attention, square))
    const fed = feedForward(building, ff, modulated(building, added, second), width)
    return gatedSum(building, added, second.gate, fed)
  }
  return {
    text: finished(text, forText, [`${attn}.to_add_out`, `${name}.ff_context`], ofText),
    image: finished(image, forImage, [`${attn}.to_out.0`, `${name}.ff`], ofImage),
  }
}

const singleBlock = (
  building: PartBuilding,
  config: FluxConfig,
  name: string,
  x: Value,
  embedding: Value,
  rotary: Rotary,
): Value => {
  const { graph } = building
  const { width } = config
  const attn = `${name}.attn`
  const [shift, scale, gate] = modulation(building, `${name}.norm.linear`, embedding, width, 3)
  const normed = modulated(building, x, { shift: shift!, scale: scale! })
  const parts = triple(
    building,
    [`${attn}.to_q`, `${attn}.to_k`, `${attn}.to_v`],
    [`${attn}.norm_q`, `${attn}.norm_k`],
    normed,
    config,
  )
  const inner = 4 * width
  const hidden = linear(building, `${name}.proj_mlp`, normed, { rows: inner, columns: width })
  const both = graph.concat(
    [attended(building, parts, config, rotary), graph.fused("FastGelu", [hidden])],
    2,
  )
  const output = linear(building, `${name}.proj_out`, both, {
    rows: width,
    columns: width + inner,
  })
  return gatedSum(building, x, gate!, output)
}

/**
 * The denoiser of FLUX.1 (https://github.com/black-forest-labs/flux). In: `latents [1,S,channels]`,
 * tokens of the picture and of references behind them, `context [1,T,contextWidth]`, `pooled
 * [1,pooledWidth]`, `timestep [1]` from 0 to 1,000, `guidance [1]` where the model has it, and the
 * rotary tables `cos` and `sin [T+S, headSize/2]`. Out: `output [1,S,channels]`, the velocity.
 */
export const buildFluxTransformer = (
  building: PartBuilding,
  config: FluxConfig,
  progress: (detail: string) => void = () => {},
): void => {
  const { graph } = building
  const { width, channels, contextWidth, pooledWidth } = config
  const headSize = width / config.heads
  const latents = graph.input("latents", "float", [1, "S", channels])
  const context = graph.input("context", "float", [1, "T", contextWidth])
  const pooled = graph.input("pooled", "float", [1, pooledWidth])
  const timestep = graph.input("timestep", "float", [1])
  const rotary = {
    cos: graph.input("cos", "float", ["N", headSize / 2]),
    sin: graph.input("sin", "float", ["N", headSize / 2]),
  }
  const of = (part: string, x: Value, columns: number) =>
    embedded(building, `time_text_embed.${part}`, x, { columns, width })
  const embeddings = [
    of("timestep_embedder", sinusoids(building, timestep, 256), 256),
    ...(config.guidance ? [guidanceEmbedding(building, of)] : []),
    of(
      "text_embedder",
      graph.node("Reshape", [pooled, graph.ints([1, 1, pooledWidth])]),
      pooledWidth,
    ),
  ]
  const embedding = embeddings.reduce((sum, one) => graph.node("Add", [sum, one]))
  let streams: Streams = {
    image: linear(building, "x_embedder", latents, { rows: width, columns: channels }),
    text: linear(building, "context_embedder", context, { rows: width, columns: contextWidth }),
  }
  const blocks = config.blocks + config.singleBlocks
  for (let block = 0; block < config.blocks; block++) {
    progress(`block ${block + 1} of ${blocks}`)
    const name = `transformer_blocks.${block}`
    streams = doubleBlock(building, config, name, streams, embedding, rotary)
  }
  let all = graph.concat([streams.text, streams.image], 1)
  for (let block = 0; block < config.singleBlocks; block++) {
    progress(`block ${config.blocks + block + 1} of ${blocks}`)
    const name = `single_transformer_blocks.${block}`
    all = singleBlock(building, config, name, all, embedding, rotary)
  }
  const [, image] = divided(building, all, tokensOf(building, context))
  const output = projected(building, image, embedding, { width, outputs: channels })
  graph.output("output", output, "float", [1, "S", channels])
}

/** The distilled guidance scale enters as a timestep does, a thousandfold. */
const guidanceEmbedding = (
  building: PartBuilding,
  of: (part: string, x: Value, columns: number) => Value,
): Value => {
  const { graph } = building
  const guidance = graph.input("guidance", "float", [1])
  const thousandfold = graph.node("Mul", [guidance, graph.floats(1000)])
  return of("guidance_embedder", sinusoids(building, thousandfold, 256), 256)
}
