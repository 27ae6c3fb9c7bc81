import type { DecoderConfig } from "../architectures/decoder-config.ts"
import type { AttentionInput } from "./attention.ts"
import type { GraphBuilder, Value } from "./graph-builder.ts"

const toInt32 = 6

/** Lengths of the rows of a pass, as the operator takes them. */
export interface DeviceFrame {
  /** The position of each row's last new token, int32 `[B]`. */
  readonly last: Value
  /** The tokens of the longest row with the new ones, int32 `[1]`. */
  readonly longest: Value
}

export const deviceFrame = (graph: GraphBuilder): DeviceFrame => {
  const int32 = (value: Value) => graph.node("Cast", [value], { attributes: { to: toInt32 } })
  graph.input("last", "int64", ["B"])
  graph.input("longest", "int64", [1])
  return { last: int32("last"), longest: int32("longest") }
}

/**
 * Grouped-query attention over keys and values that stay on a device: ONNX Runtime's operator
 * writes the new ones behind each row's cached ones, into `present`, which a pass gives the buffers
 * of `past`. Several new tokens with a past are one row's only. Returns `[B, S, heads*headSize]`.
 */
export const deviceAttention = (
  graph: GraphBuilder,
  { heads, kvHeads, headSize, attentionScale }: DecoderConfig,
  { last, longest }: DeviceFrame,
  { queries, keys, values, past, window }: AttentionInput,
  present: { readonly keys: string; readonly values: string },
): Value => {
  const outputs = ["attended", "cached_keys", "cached_values"].map((name) => graph.name(name))
  const inputs = [queries, keys, values, past.keys, past.values, last, longest]
  const [attended, cachedKeys, cachedValues] = graph.nodeWith(
    "GroupQueryAttention",
    inputs,
    outputs,
    {
      attributes: {
        num_heads: heads,
        kv_num_heads: kvHeads,
        scale: { float: attentionScale },
        local_window_size: window ?? -1,
      },
      domain: "com.microsoft",
    },
  )
  const shape = ["PB", kvHeads, "P", headSize]
  graph.output(present.keys, cachedKeys!, "float", shape)
  graph.output(present.values, cachedValues!, "float", shape)
  return attended!
}
