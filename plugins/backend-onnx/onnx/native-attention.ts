import type { DecoderConfig } from "../architectures/decoder-config.ts"
import type { Building } from "./building.ts"
import type { Value } from "./graph-builder.ts"
import type { Heads } from "./heads.ts"

/**
 * Layers whose keys and values are one input: few inputs cost less in each pass, and one array for
 * all layers of a large model would exceed what JavaScript has.
 */
const bankLayers = 16

/** The layers of each input of keys and values, `past.0`, `past.1` ... */
export const layersOfBanks = ({ layers }: Pick<DecoderConfig, "layers">): readonly number[] =>
  Array.from({ length: Math.ceil(layers / bankLayers) }, (_, bank) =>
    Math.min(bankLayers, layers - bank * bankLayers),
  )

/** Whether the graph's attention is native. */
export const isNative = ({ graph, floatKv = false }: Building): boolean => graph.kernels && !floatKv

/**
 * Declares `past.{b} [2*layers, rows, KV, P, H]`, halves as their bits, keys before values, and
 * `past_rows [B]`, the row of each sequence in them.
 */
export const declareBanks = ({ graph, config }: Building): void => {
  graph.input("past_rows", "int64", ["B"])
  for (const [bank, layers] of layersOfBanks(config).entries())
    graph.input(`past.${bank}`, "uint16", [2 * layers, "PB", config.kvHeads, "P", config.headSize])
}

/** Stands for an input that a node leaves out. */
const absent = ""

/** The weights of the norms of a layer's heads. */
const headNorms = ({ graph, config, weights }: Building, layer: number): readonly Value[] =>
  config.headNorms
    ? (["queries", "keys"] as const).map((part) => graph.floats([...weights.norm(layer, part)]))
    : []

/**
 * Grouped-query attention by the native operator, which reads the cache where it is, with the same
 * promise as that of `attention`; it normalizes and rotates heads, too. Returns also the new keys
 * and values, halves `[2,B,S,KV*H]`.
 */
export const nativeAttention = (
  building: Building,
  { layer, products, rotation }: Heads,
): { readonly attended: Value; readonly fresh: Value } => {
  const { graph, config } = building
  const [attended, fresh] = [graph.name("attended"), graph.name("fresh")]
  const window = config.windows[layer]
  const [first, second = absent, third = absent] = products.groups
  const bank = `past.${Math.floor(layer / bankLayers)}`
  const turning = rotation
    ? [rotation.positions, rotation.tables.cos, rotation.tables.sin]
    : [absent, absent, absent]
  graph.nodeWith(
    "CachedAttention",
    [
      first!,
      bank,
      "past_lens",
      "past_rows",
      second,
      third,
      ...turning,
      ...headNorms(building, layer),
    ],
    [attended, fresh],
    {
      attributes: {
        kv_heads: config.kvHeads,
        scale: { float: config.attentionScale },
        layer: layer % bankLayers,
        epsilon: { float: config.normEpsilon },
        ...(window !== undefined && { window }),
      },
      domain: "rakit",
    },
  )
  return { attended, fresh }
}
