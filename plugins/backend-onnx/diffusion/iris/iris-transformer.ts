import { product } from "../../encoding/encoder-parts.ts"
import type { Value } from "../../onnx/graph-builder.ts"
import { countIn, countOr, type Metadata, numberOr } from "../../weights/gguf-metadata.ts"
import { decodeRow, matrixOf } from "../../weights/matrix.ts"
import { Damaged } from "../../weights/model-file-error.ts"
import { embedded, linear, type PartBuilding, silu, sinusoids } from "../graph/layers.ts"
import {
  attended,
  feedForward,
  type IrisConfig,
  namedNorm,
  norm,
  type Rotary,
} from "./iris-layers.ts"
import { sketched } from "./iris-sketch.ts"

export const irisConfig = (json: Metadata): IrisConfig => {
  const width = countIn(json, "hidden_size", 16_384)
  const heads = countIn(json, "num_attention_heads", 256)
  if (width % (4 * heads))
    throw new Damaged(`'hidden_size' is ${width}, which is no multiple of 4 for ${heads} heads`)
  const patch = countIn(json, "patch_size", 64)
  const frequencies = countIn(json, "position_frequencies", 64)
  if (frequencies % 2) throw new Damaged(`'position_frequencies' is ${frequencies}, which is odd`)
  return {
    patch,
    channels: patch ** 2 * countOr(json, "in_channels", 3, 3),
    bottleneck: countIn(json, "bottleneck_size", 16_384),
    width,
    heads,
    blocks: countIn(json, "num_layers", 256),
    crossEvery: countIn(json, "cross_attention_every", 256),
    refiners: countIn(json, "num_refiner_layers", 64),
    inner: countIn(json, "mlp_ratio", 16) * width,
    modulation: countIn(json, "modulation_size", 16_384),
    textWidth: countIn(json, "text_size", 16_384),
    maxReferences: countIn(json, "max_references", 16),
    sketchGrid: countIn(json, "sketch_grid", 64),
    sketchValues: countIn(json, "sketch_size", 4096),
    sketchHidden: countIn(json, "sketch_hidden", 16_384),
    slots: countIn(json, "sketch_slots", 64),
    readers: countIn(json, "sketch_readers", 64),
    frequencies,
    theta: numberOr(json, "rope_theta", 100),
  }
}

/** Shifts, scales, gates ... as one layer makes them of the condition: `[width]` each. */
const modulations = (
  building: PartBuilding,
  name: string,
  condition: Value,
  { width, modulation }: IrisConfig,
  count: number,
): readonly Value[] => {
  const { graph } = building
  const sizes = { rows: count * width, columns: modulation }
  const all = graph.node("Reshape", [linear(building, name, condition, sizes), graph.ints([-1])])
  const parts = Array.from({ length: count }, () => graph.name("mod"))
  return graph.nodeWith("Split", [all], parts, { attributes: { axis: 0 } })
}

const modulated = (building: PartBuilding, x: Value, shift: Value, scale: Value): Value =>
  norm(building, x, building.graph.node("Add", [scale, building.graph.floats(1)]), shift)

const gatedSum = ({ graph }: PartBuilding, x: Value, gate: Value, added: Value): Value =>
  graph.node("Add", [x, graph.node("Mul", [gate, added])])

/** States of the text's tokens, `[1,T,width]`, and their mean `[1,1,width]`. */
const refinedText = (building: PartBuilding, config: IrisConfig, text: Value) => {
  const { graph } = building
  const { width, textWidth } = config
  let x = linear(building, "text_embed", text, { rows: width, columns: textWidth })
  for (let index = 0; index < config.refiners; index++) {
    const name = `text_refiner.${index}`
    const first = namedNorm(building, `${name}.norm1`, x, width)
    x = graph.node("Add", [x, attended(building, `${name}.attn`, first, config)])
    const second = namedNorm(building, `${name}.norm2`, x, width)
    x = graph.node("Add", [x, feedForward(building, `${name}.ff`, second, config)])
  }
  const states = namedNorm(building, "text_norm", x, width)
  const mean = graph.node("ReduceMean", [states], { attributes: { axes: [1], keepdims: 1 } })
  return { states, mean }
}

/** What is added to the tokens of the canvas (nothing) and of each reference. */
const marks = ({ graph, file }: PartBuilding, { width, maxReferences }: IrisConfig): Value => {
  const all = new Float32Array((1 + maxReferences) * width)
  const matrix = matrixOf(file, "reference_embed", { rows: maxReferences, columns: width })
  for (let row = 0; row < maxReferences; row++)
    decodeRow(matrix, row, all.subarray((row + 1) * width, (row + 2) * width))
  return graph.node("Reshape", [graph.floats([...all]), graph.ints([-1, width])])
}

/** Embeds the patches of canvas and references, `[1,N,width]`. */
const patchTokens = (building: PartBuilding, config: IrisConfig): Value => {
  const { graph } = building
  const { width, channels, bottleneck, frequencies } = config
  const latents = graph.input("latents", "float", [1, "N", channels])
  const places = graph.input("places", "float", [1, "N", 6 * frequencies])
  const pictures = graph.input("pictures", "int64", ["N"])
  const narrow = product(building, "patch_embed.0", latents, {
    rows: bottleneck,
    columns: channels,
  })
  const patches = linear(building, "patch_embed.1", narrow, { rows: width, columns: bottleneck })
  const position = product(building, "pos_embed", places, { rows: width, columns: 6 * frequencies })
  const mark = graph.node("Gather", [marks(building, config), pictures])
  return graph.node("Add", [graph.node("Add", [patches, position]), mark])
}

const block = (
  building: PartBuilding,
  name: string,
  x: Value,
  config: IrisConfig,
  { condition, text, rotary }: { condition: Value; text: Value | undefined; rotary: Rotary },
): Value => {
  const { graph } = building
  const [shift1, scale1, gate1, shift2, scale2, gate2] = modulations(
    building,
    `${name}.modulation`,
    condition,
    config,
    6,
  )
  const first = modulated(building, x, shift1!, scale1!)
  let y = gatedSum(
    building,
    x,
    gate1!,
    attended(building, `${name}.attn1`, first, config, { rotary }),
  )
  if (text !== undefined) {
    const query = namedNorm(building, `${name}.norm2`, y, config.width)
    const seen = attended(building, `${name}.attn2`, query, config, { context: text })
    y = graph.node("Add", [y, seen])
  }
  const second = modulated(building, y, shift2!, scale2!)
  return gatedSum(building, y, gate2!, feedForward(building, `${name}.ff`, second, config))
}

/**
 * The denoiser of the default image model (plugins/model-iris/train/model.py), a transformer over
 * large patches of pixels after "Back to Basics" (Li and He, arXiv 2511.13720).
 *
 * In: `latents [1,N,channels]`, patches of the noisy canvas and behind them those of references;
 * `pictures [N]`, 0 for a patch of the canvas and k for one of reference k; `canvas [1]`, how many
 * patches the canvas has; `places [1,N,6F]`, `cos`, `sin [N,headSize/2]` and `across`, see `gridTables`;
 * `text [1,T,textWidth]`; `timestep [1]` from 0 to 1,000.
 * Out: `output [1,S,channels]`, the patches of the clean canvas.
 */
export const buildIrisTransformer = (
  building: PartBuilding,
  config: IrisConfig,
  progress: (detail: string) => void = () => {},
): void => {
  const { graph } = building
  const { width, channels, heads, modulation } = config
  const patches = patchTokens(building, config)
  const canvas = graph.input("canvas", "int64", [1])
  const rotary = {
    cos: graph.input("cos", "float", ["N", width / heads / 2]),
    sin: graph.input("sin", "float", ["N", width / heads / 2]),
  }
  const text = refinedText(
    building,
    config,
    graph.input("text", "float", [1, "T", config.textWidth]),
  )
  // zero for tokens of references
  const across = graph.input("across", "float", ["N", config.sketchGrid ** 2])
  const coarse = graph.node("MatMul", [across, sketched(building, config, text)])
  const sizesIn = { rows: width, columns: config.sketchValues }
  const begun = linear(building, "sketch_embed", coarse, sizesIn)
  let x = graph.node("Add", [patches, begun])
  const time = sinusoids(building, graph.input("timestep", "float", [1]), 256)
  const timed = embedded(building, "time_embed", time, { columns: 256, width })
  const pooled = embedded(building, "pooled_embed", text.mean, { columns: width, width })
  const both = silu(building, graph.node("Add", [timed, pooled]))
  const condition = silu(
    building,
    linear(building, "modulation", both, { rows: modulation, columns: width }),
  )
  for (let index = 0; index < config.blocks; index++) {
    progress(`block ${index + 1} of ${config.blocks}`)
    const seen = index % config.crossEvery === 0 ? text.states : undefined
    x = block(building, `blocks.${index}`, x, config, { condition, text: seen, rotary })
  }
  const own = (of: Value) => graph.node("Slice", [of, graph.ints([0]), canvas, graph.ints([1])])
  const [shift, scale] = modulations(building, "modulation_out", condition, config, 2)
  const last = modulated(building, own(x), shift!, scale!)
  const output = graph.node("Add", [
    linear(building, "proj_out", last, { rows: channels, columns: width }),
    linear(building, "sketch_out", own(coarse), { rows: channels, columns: config.sketchValues }),
  ])
  graph.output("output", output, "float", [1, "S", channels])
}
