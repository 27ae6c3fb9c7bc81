import { table, vector } from "../../encoding/encoder-parts.ts"
import type { Value } from "../../onnx/graph-builder.ts"
import { countIn, countOr, type Metadata, numbersIn, present } from "../../weights/gguf-metadata.ts"
import { Unsupported } from "../../weights/model-file-error.ts"
import { embedded, linear, type PartBuilding, sinusoids } from "../graph/layers.ts"
import { positionsOf } from "./sd3-positions.ts"
import {
  attended,
  divided,
  feedForward,
  gatedSum,
  joined,
  modulated,
  modulation,
  projected,
  tokensOf,
  triple,
} from "./streams.ts"

/** Sizes of an SD3Transformer2DModel. */
export interface Sd3Config {
  /** Channels of latents. */
  readonly channels: number
  readonly outputs: number
  /** Edge of a patch of latents. */
  readonly patch: number
  readonly blocks: number
  readonly heads: number
  readonly width: number
  readonly contextWidth: number
  readonly pooledWidth: number
  /** Edge of the table of positions, in patches. */
  readonly positions: number
  /** Blocks whose picture has a second attention, of its own tokens. */
  readonly dual: readonly number[]
}

export const sd3Config = (json: Metadata): Sd3Config => {
  const heads = countIn(json, "num_attention_heads", 1024)
  const width = heads * countIn(json, "attention_head_dim", 1024)
  const caption = countOr(json, "caption_projection_dim", 65_536, width)
  if (caption !== width)
    throw new Unsupported(`'caption_projection_dim' is ${caption}, and its tokens have ${width}`)
  const norm: unknown = json.get("qk_norm") ?? "rms_norm"
  if (norm !== "rms_norm")
    throw new Unsupported(`'qk_norm' is '${String(norm)}'; this backend runs 'rms_norm' and none`)
  const channels = countIn(json, "in_channels", 65_536)
  return {
    channels,
    outputs: countOr(json, "out_channels", 65_536, channels),
    patch: countOr(json, "patch_size", 64, 2),
    blocks: countIn(json, "num_layers", 512),
    heads,
    width,
    contextWidth: countIn(json, "joint_attention_dim", 65_536),
    pooledWidth: countIn(json, "pooled_projection_dim", 65_536),
    positions: countIn(json, "pos_embed_max_size", 4096),
    dual: present(json, "dual_attention_layers") ? numbersIn(json, "dual_attention_layers") : [],
  }
}

interface Streams {
  readonly text: Value
  readonly image: Value
}

const projectionsOf = (
  building: PartBuilding,
  config: Sd3Config,
  attn: string,
  x: Value,
  added = false,
) =>
  triple(
    building,
    added
      ? [`${attn}.add_q_proj`, `${attn}.add_k_proj`, `${attn}.add_v_proj`]
      : [`${attn}.to_q`, `${attn}.to_k`, `${attn}.to_v`],
    added ? [`${attn}.norm_added_q`, `${attn}.norm_added_k`] : [`${attn}.norm_q`, `${attn}.norm_k`],
    x,
    config,
  )

/** The feed-forward of a stream, which all blocks have but the last one's text. */
const fed = (
  building: PartBuilding,
  name: string,
  x: Value,
  [shift, scale, gate]: readonly Value[],
  width: number,
): Value => {
  const normed = modulated(building, x, { shift: shift!, scale: scale! })
  return gatedSum(building, x, gate!, feedForward(building, name, normed, width))
}

/** A block of two streams whose tokens see each other (Esser et al., arXiv 2403.03206). */
const jointBlock = (
  building: PartBuilding,
  config: Sd3Config,
  block: number,
  { text, image }: Streams,
  embedding: Value,
): Streams => {
  const { width } = config
  const name = `transformer_blocks.${block}`
  const attn = `${name}.attn`
  const square = { rows: width, columns: width }
  const isLast = block === config.blocks - 1
  const isDual = config.dual.includes(block)
  const of = (part: string, count: number) =>
    modulation(building, `${name}.${part}.linear`, embedding, width, count)
  const mods = of("norm1", isDual ? 9 : 6)
  // the norm of a text that ends here has its scale first, and no gates
  const textMods = of("norm1_context", isLast ? 2 : 6)
  const textFirst = isLast
    ? { scale: textMods[0]!, shift: textMods[1]! }
    : { shift: textMods[0]!, scale: textMods[1]! }
  const normed = modulated(building, image, { shift: mods[0]!, scale: mods[1]! })
  const ofImage = projectionsOf(building, config, attn, normed)
  const normedText = modulated(building, text, textFirst)
  const ofText = projectionsOf(building, config, attn, normedText, true)
  const all = attended(building, joined(building, ofImage, ofText), config)
  const [forImage, forText] = divided(building, all, tokensOf(building, image))
  const out = linear(building, `${attn}.to_out.0`, forImage, square)
  let after = gatedSum(building, image, mods[2]!, out)
  if (isDual) {
    const second = modulated(building, image, { shift: mods[6]!, scale: mods[7]! })
    const own = attended(building, projectionsOf(building, config, `${name}.attn2`, second), config)
    const ownOut = linear(building, `${name}.attn2.to_out.0`, own, square)
    after = gatedSum(building, after, mods[8]!, ownOut)
  }
  const newImage = fed(building, `${name}.ff`, after, mods.slice(3), width)
  if (isLast) return { image: newImage, text }
  const textOut = linear(building, `${attn}.to_add_out`, forText, square)
  const textAfter = gatedSum(building, text, textMods[2]!, textOut)
  return {
    image: newImage,
    text: fed(building, `${name}.ff_context`, textAfter, textMods.slice(3), width),
  }
}

/** Patches of latents as tokens `[1,S,width]` with their positions; `grid`: `[rows, columns]`. */
const patches = (building: PartBuilding, config: Sd3Config, latents: Value, grid: Value): Value => {
  const { graph } = building
  const { patch, channels, width } = config
  const weights = table(building, "pos_embed.proj.weight", width, channels, patch, patch)
  const bias = vector(building, "pos_embed.proj.bias", width)
  const map = graph.node("Conv", [latents, weights, bias], {
    attributes: { kernel_shape: [patch, patch], strides: [patch, patch] },
  })
  const flat = graph.node("Reshape", [map, graph.ints([1, width, -1])])
  const tokens = graph.node("Transpose", [flat], { attributes: { perm: [0, 2, 1] } })
  return graph.node("Add", [tokens, positionsOf(building, config, grid)])
}

/** Tokens `[1,S,patch*patch*outputs]` as latents `[1,outputs,H,W]`. */
const unpatched = (
  { graph }: PartBuilding,
  { patch, outputs }: Sd3Config,
  tokens: Value,
  grid: Value,
): Value => {
  const apart = graph.concat([graph.ints([1]), grid, graph.ints([patch, patch, outputs])], 0)
  const moved = graph.node("Transpose", [graph.node("Reshape", [tokens, apart])], {
    attributes: { perm: [0, 5, 1, 3, 2, 4] },
  })
  const size = graph.node("Mul", [grid, graph.ints([patch])])
  return graph.node("Reshape", [moved, graph.concat([graph.ints([1, outputs]), size], 0)])
}

/**
 * The denoiser of Stable Diffusion 3 and 3.5, MMDiT (Esser et al., arXiv 2403.03206). In: `latents
 * [1,channels,H,W]`, `context [1,T,contextWidth]`, `pooled [1,pooledWidth]`, `timestep [1]` from 0 to
 * 1,000. Out: `output [1,outputs,H,W]`, the velocity.
 */
export const buildSd3Transformer = (
  building: PartBuilding,
  config: Sd3Config,
  progress: (detail: string) => void = () => {},
): void => {
  const { graph } = building
  const { width, channels, contextWidth, pooledWidth, patch, outputs } = config
  const latents = graph.input("latents", "float", [1, channels, "H", "W"])
  const context = graph.input("context", "float", [1, "T", contextWidth])
  const pooled = graph.input("pooled", "float", [1, pooledWidth])
  const timestep = graph.input("timestep", "float", [1])
  const size = graph.node("Shape", [latents], { attributes: { start: 2, end: 4 } })
  const grid = graph.node("Div", [size, graph.ints([patch])])
  const of = (part: string, x: Value, columns: number) =>
    embedded(building, `time_text_embed.${part}`, x, { columns, width })
  const embedding = graph.node("Add", [
    of("timestep_embedder", sinusoids(building, timestep, 256), 256),
    of(
      "text_embedder",
      graph.node("Reshape", [pooled, graph.ints([1, 1, pooledWidth])]),
      pooledWidth,
    ),
  ])
  let streams: Streams = {
    image: patches(building, config, latents, grid),
    text: linear(building, "context_embedder", context, { rows: width, columns: contextWidth }),
  }
  for (let block = 0; block < config.blocks; block++) {
    progress(`block ${block + 1} of ${config.blocks}`)
    streams = jointBlock(building, config, block, streams, embedding)
  }
  const tokens = projected(building, streams.image, embedding, {
    width,
    outputs: patch * patch * outputs,
  })
  const output = unpatched(building, config, tokens, grid)
  graph.output("output", output, "float", [1, outputs, "H", "W"])
}
