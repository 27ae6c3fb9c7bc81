import type { DecoderConfig } from "../architectures/decoder-config.ts"
import type { Building } from "./building.ts"
import type { QueriesKeysValues } from "./decoder-layers.ts"
import type { Value } from "./graph-builder.ts"

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

/**
 * Grouped-query attention by the native operator, which reads the cache where it is, with the same
 * promise as that of `attention`. Returns also the new keys and values, halves `[2,B,S,KV*H]`.
 */
export const nativeAttention = (
  { graph, config }: Building,
  layer: number,
  { queries, keys, values }: QueriesKeysValues,
): { readonly attended: Value; readonly fresh: Value } => {
  const [attended, fresh] = [graph.name("attended"), graph.name("fresh")]
  const window = config.windows[layer]
  const bank = Math.floor(layer / bankLayers)
  graph.nodeWith(
    "CachedAttention",
    [queries, keys, values, `past.${bank}`, "past_lens", "past_rows"],
    [attended, fresh],
    {
      attributes: {
        kv_heads: config.kvHeads,
        scale: { float: config.attentionScale },
        layer: layer % bankLayers,
        ...(window !== undefined && { window }),
      },
      domain: "rakit",
    },
  )
  return { attended, fresh }
}
