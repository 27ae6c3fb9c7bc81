import type { Value } from "../../onnx/graph-builder.ts"
import { countIn, countOr, type Metadata, numberOr } from "../../weights/gguf-metadata.ts"
import { Damaged } from "../../weights/model-file-error.ts"
import { embedded, linear, type PartBuilding, silu, sinusoids } from "../graph/layers.ts"
import { axesIn } from "./rotary-positions.ts"
import {
  attended,
  divided,
  gatedSum,
  headNormed,
  joined,
  modulated,
  modulation,
  projected,
  type Rotary,
  tokensOf,
  triple,
} from "./streams.ts"

/** Sizes of a Flux2Transformer2DModel. */
export interface Flux2Config {
  /** Numbers of a token: those of a patch of latents. */
  readonly channels: number
  readonly blocks: number
  readonly singleBlocks: number
  readonly heads: number
  readonly width: number
  readonly contextWidth: number
  /** Width inside a feed-forward. */
  readonly feedForward: number
  readonly sinusoids: number
  /** Guidance is an input of a distilled model. */
  readonly guidance: boolean
  /** Rotated dimensions of a head, by axis of a token's position. */
  readonly axes: readonly number[]
  readonly theta: number
}

export const flux2Config = (json: Metadata): Flux2Config => {
  const heads = countIn(json, "num_attention_heads", 1024)
  const headSize = countIn(json, "attention_head_dim", 1024)
  const axes = axesIn(json, "axes_dims_rope", [32, 32, 32, 32], headSize)
  if (axes.length !== 4) throw new Damaged(`'axes_dims_rope' has ${axes.length} axes in place of 4`)
  const width = heads * headSize
  return {
    channels: countIn(json, "in_channels", 65_536),
    blocks: countIn(json, "num_layers", 512),
    singleBlocks: countIn(json, "num_single_layers", 512),
    heads,
    width,
    contextWidth: countIn(json, "joint_attention_dim", 65_536),
    feedForward: Math.trunc(width * numberOr(json, "mlp_ratio", 3)),
    sinusoids: countOr(json, "timestep_guidance_channels", 65_536, 256),
    guidance: (json.get("guidance_embeds") as unknown) !== false,
    axes,
    theta: numberOr(json, "rope_theta", 2000),
  }
}

interface Modulation {
  readonly shift: Value
  readonly scale: Value
  readonly gate: Value
}

/** Modulations that all blocks of a kind share. */
const modulations = (
  building: PartBuilding,
  name: string,
  embedding: Value,
  width: number,
  sets: number,
): readonly Modulation[] => {
  const parts = modulation(building, `${name}.linear`, embedding, width, 3 * sets)
  return Array.from({ length: sets }, (_, set) => {
    const [shift, scale, gate] = parts.slice(3 * set)
    return { shift: shift!, scale: scale!, gate: gate! }
  })
}

/** The first half of `x [.., 2 * width]` by SiLU, times the second. */
const swiGlu = (building: PartBuilding, x: Value): Value => {
  const { graph } = building
  const names = [graph.name("gate"), graph.name("up")]
  const [gate, up] = graph.nodeWith("Split", [x], names, { attributes: { axis: -1 } })
  return graph.node("Mul", [silu(building, gate!), up!])
}

interface Streams {
  readonly text: Value
  readonly image: Value
}

const doubleBlock = (
  building: PartBuilding,
  config: Flux2Config,
  name: string,
  { text, image }: Streams,
  mods: { readonly text: readonly Modulation[]; readonly image: readonly Modulation[] },
  rotary: Rotary,
): Streams => {
  const { width, feedForward } = config
  const attn = `${name}.attn`
  const imageTriple = triple(
    building,
    [`${attn}.to_q`, `${attn}.to_k`, `${attn}.to_v`],
    [`${attn}.norm_q`, `${attn}.norm_k`],
    modulated(building, image, mods.image[0]!),
    config,
  )
  const textTriple = triple(
    building,
    [`${attn}.add_q_proj`, `${attn}.add_k_proj`, `${attn}.add_v_proj`],
    [`${attn}.norm_added_q`, `${attn}.norm_added_k`],
    modulated(building, text, mods.text[0]!),
    config,
  )
  const all = attended(building, joined(building, textTriple, imageTriple), config, rotary)
  const [forText, forImage] = divided(building, all, tokensOf(building, text))
  const finished = (
    x: Value,
    attention: Value,
    [out, ff]: readonly [string, string],
    [first, second]: readonly Modulation[],
  ): Value => {
    const square = { rows: width, columns: width }
    const added = gatedSum(building, x, first!.gate, linear(building, out, attention, square))
    const hidden = linear(building, `${ff}.linear_in`, modulated(building, added, second!), {
      rows: 2 * feedForward,
      columns: width,
    })
    const fed = linear(building, `${ff}.linear_out`, swiGlu(building, hidden), {
      rows: width,
      columns: feedForward,
    })
    return gatedSum(building, added, second!.gate, fed)
  }
  return {
    text: finished(text, forText, [`${attn}.to_add_out`, `${name}.ff_context`], mods.text),
    image: finished(image, forImage, [`${attn}.to_out.0`, `${name}.ff`], mods.image),
  }
}

/** A block whose attention and feed-forward have one projection before them and one behind. */
const singleBlock = (
  building: PartBuilding,
  config: Flux2Config,
  name: string,
  x: Value,
  mod: Modulation,
  rotary: Rotary,
): Value => {
  const { graph } = building
  const { width, feedForward } = config
  const attn = `${name}.attn`
  const all = linear(building, `${attn}.to_qkv_mlp_proj`, modulated(building, x, mod), {
    rows: 3 * width + 2 * feedForward,
    columns: width,
  })
  const names = ["q", "k", "v", "hidden"].map((part) => graph.name(part))
  const sizes = graph.ints([width, width, width, 2 * feedForward])
  const [q, k, v, hidden] = graph.split(all, sizes, names, -1)
  const normed = headNormed(building, [q!, k!, v!], [`${attn}.norm_q`, `${attn}.norm_k`], config)
  const both = graph.concat(
    [attended(building, normed, config, rotary), swiGlu(building, hidden!)],
    2,
  )
  const output = linear(building, `${attn}.to_out`, both, {
    rows: width,
    columns: width + feedForward,
  })
  return gatedSum(building, x, mod.gate, output)
}

/** The timestep's embedding `[1,1,width]`, with that of guidance where the model has it. */
const embeddingOf = (building: PartBuilding, config: Flux2Config, timestep: Value): Value => {
  const { graph } = building
  const { width, sinusoids: columns } = config
  const of = (part: string, x: Value) =>
    embedded(building, `time_guidance_embed.${part}`, sinusoids(building, x, columns), {
      columns,
      width,
    })
  const time = of("timestep_embedder", timestep)
  if (!config.guidance) return time
  const guidance = graph.input("guidance", "float", [1])
  const thousandfold = graph.node("Mul", [guidance, graph.floats(1000)])
  return graph.node("Add", [time, of("guidance_embedder", thousandfold)])
}

/**
 * The denoiser of FLUX.2 (https://github.com/black-forest-labs/flux2). In: `latents [1,S,channels]`,
 * tokens of the picture and of references behind them, `context [1,T,contextWidth]`, `timestep [1]`
 * from 0 to 1,000, `guidance [1]` where the model has it, and the rotary tables `cos` and `sin
 * [T+S, headSize/2]`. Out: `output [1,S,channels]`, the velocity.
 */
export const buildFlux2Transformer = (
  building: PartBuilding,
  config: Flux2Config,
  progress: (detail: string) => void = () => {},
): void => {
  const { graph } = building
  const { width, channels, contextWidth } = config
  const headSize = width / config.heads
  const latents = graph.input("latents", "float", [1, "S", channels])
  const context = graph.input("context", "float", [1, "T", contextWidth])
  const timestep = graph.input("timestep", "float", [1])
  const rotary = {
    cos: graph.input("cos", "float", ["N", headSize / 2]),
    sin: graph.input("sin", "float", ["N", headSize / 2]),
  }
  const embedding = embeddingOf(building, config, timestep)
  const mods = {
    image: modulations(building, "double_stream_modulation_img", embedding, width, 2),
    text: modulations(building, "double_stream_modulation_txt", embedding, width, 2),
  }
  const [single] = modulations(building, "single_stream_modulation", embedding, width, 1)
  let streams: Streams = {
    image: linear(building, "x_embedder", latents, { rows: width, columns: channels }),
    text: linear(building, "context_embedder", context, { rows: width, columns: contextWidth }),
  }
  const blocks = config.blocks + config.singleBlocks
  for (let block = 0; block < config.blocks; block++) {
    progress(`block ${block + 1} of ${blocks}`)
    streams = doubleBlock(building, config, `transformer_blocks.${block}`, streams, mods, rotary)
  }
  let all = graph.concat([streams.text, streams.image], 1)
  for (let block = 0; block < config.singleBlocks; block++) {
    progress(`block ${config.blocks + block + 1} of ${blocks}`)
    all = singleBlock(building, config, `single_transformer_blocks.${block}`, all, single!, rotary)
  }
  const [, image] = divided(building, all, tokensOf(building, context))
  const output = projected(building, image, embedding, { width, outputs: channels })
  graph.output("output", output, "float", [1, "S", channels])
}
