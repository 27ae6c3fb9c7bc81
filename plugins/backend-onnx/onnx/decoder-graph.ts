import { decodeRow, rowsOf } from "../weights/matrix.ts"
import { type AttentionInput, attention, attentionFrame } from "./attention.ts"
import type { Building } from "./building.ts"
import { decoderStates } from "./decoder-layers.ts"
import { deviceAttention, deviceFrame } from "./device-attention.ts"
import type { Value } from "./graph-builder.ts"
import { type Heads, turnedHeads } from "./heads.ts"
import { linear, type Precision } from "./linear.ts"
import { declareBanks, isNative, nativeAttention } from "./native-attention.ts"

/** Increment it whenever graphs built by earlier versions must be built again. */
export const decoderGraphVersion = 13

const declareInputs = (building: Building): void => {
  const { graph, config } = building
  graph.input("x", "float", ["B", "S", config.width])
  graph.input("position_ids", "int64", [...(config.sections ? [3] : []), "B", "S"])
  if (graph.target === "cpu") graph.input("past_lens", "int64", ["B"])
  graph.input("logit_idx", "int64", ["R"])
  if (isNative(building)) {
    declareBanks(building)
    return
  }
  for (let layer = 0; layer < config.layers; layer++)
    for (const kind of ["k", "v"])
      graph.input(`past.${layer}.${kind}`, "float", ["PB", config.kvHeads, "P", config.headSize])
}

/** Checks for non-finite values in an embedding table that is not converted as the head. */
const refuseBrokenEmbedding = ({ config, weights }: Building): void => {
  const table = weights.embedding()
  const row = new Float32Array(table.columns)
  if (!config.tiedHead)
    for (let token = 0; token < table.rows; token++) decodeRow(table, token, row)
}

/** The head is never rounded to 4 bits, which cost too much quality there. */
const headPrecision = (precision: Precision): Precision =>
  precision === "int4" ? "auto" : precision

type Attend = Parameters<typeof decoderStates>[1]["attend"]

interface Attending {
  readonly layer: Attend
  finish(): void
}

const inputOf = (building: Building, heads: Heads): AttentionInput => ({
  ...turnedHeads(building, heads),
  past: { keys: `past.${heads.layer}.k`, values: `past.${heads.layer}.v` },
  window: building.config.windows[heads.layer],
})

const attendOnCpu = (building: Building): Attending => {
  const { graph, config } = building
  const frame = attentionFrame(graph, config, "x", "past.0.k")
  const all: Value[] = []
  return {
    layer: (heads) => {
      const input = inputOf(building, heads)
      all.push(input.keys, input.values)
      return attention(graph, config, frame, input)
    },
    finish: () => {
      const width = config.kvHeads * config.headSize
      graph.output("new_kv", graph.concat(all, 0), "float", ["LB", "S", width])
    },
  }
}

const attendByKernels = (building: Building): Attending => {
  const { graph, config } = building
  const all: Value[] = []
  return {
    layer: (heads) => {
      const { attended, fresh } = nativeAttention(building, heads)
      all.push(fresh)
      return attended
    },
    finish: () => {
      const width = config.kvHeads * config.headSize
      graph.output("new_kv", graph.concat(all, 0), "uint16", ["L", "B", "S", width])
    },
  }
}

const attendOnDevice = (building: Building): Attending => {
  const { graph, config } = building
  const frame = deviceFrame(graph)
  return {
    layer: (heads) => {
      const present = { keys: `present.${heads.layer}.k`, values: `present.${heads.layer}.v` }
      return deviceAttention(graph, config, frame, inputOf(building, heads), present)
    },
    finish: () => {},
  }
}

/**
 * Builds the graph of a Llama-like decoder (Touvron et al., arXiv 2302.13971) that returns only the
 * NEW keys and values, so that the cache is never copied.
 *
 * In: `x [B,S,width]` (embedded tokens), `position_ids [B,S]` (`[3,B,S]` of time, rows
 * and columns with sections), `past_lens [B]`, `logit_idx [R]`
 * (rows of B*S whose logits are wanted), `past.{l}.k|v [PB,KV,P,H]`, PB = B, or 1 for a past that
 * all rows share, with S = 1.
 * Out: `logits [1,R,vocabulary]`, `new_kv [2*layers*B, S, KV*H]`: keys then values, layer by layer.
 * With native attention, `past.{b}` of `declareBanks` and `past_rows` are in place of the past, and
 * `new_kv [2*layers, B, S, KV*H]` are halves as their bits.
 * For a device, `last [B]` and `longest [1]` are in place of `past_lens`, and `present.{l}.k|v` of
 * `new_kv`: the whole cache with the new tokens, in the buffers of the past.
 */
export const buildDecoderGraph = (
  building: Building,
  progress: (doneLayers: number, ofLayers: number) => void,
): void => {
  const { graph, config, weights, precision, headRows } = building
  declareInputs(building)
  if (headRows === undefined) refuseBrokenEmbedding(building)
  const attending = {
    kernels: attendByKernels,
    cpu: attendOnCpu,
    gpu: attendOnDevice,
  }[isNative(building) ? "kernels" : graph.target]
  const attend = attending(building)
  const last = decoderStates(building, {
    x: "x",
    positions: "position_ids",
    attend: attend.layer,
    progress: (doneLayers) => progress(doneLayers, config.layers + 1),
  })
  attend.finish()
  const chosen = graph.node(
    "Gather",
    [graph.node("Reshape", [last, graph.ints([1, -1, config.width])]), "logit_idx"],
    { attributes: { axis: 1 } },
  )
  const head = rowsOf(weights.head(), 0, headRows ?? config.vocabulary)
  const logits = linear(graph, chosen, head, headPrecision(precision))
  graph.output("logits", logits, "float", [1, "R", head.rows])
}
