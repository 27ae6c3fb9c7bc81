import type { Building } from "./building.ts"
import type { Value } from "./graph-builder.ts"
import { plainNorm } from "./norms.ts"
import type { Products } from "./products.ts"
import type { RotaryTables } from "./rotary-tables.ts"

/** What attention is given by a layer. */
export interface Heads {
  readonly layer: number
  /** The layer's queries, keys and values; heads are neither normalized nor rotated yet. */
  readonly products: Products
  /** Undefined: heads are not rotated. */
  readonly rotation:
    | {
        readonly tables: RotaryTables
        /** `[B, S]`, or that of the first token of all rows, `[1]`; int64. */
        readonly positions: Value
      }
    | undefined
}

/** `[B, S, heads*headSize]`; heads of queries and keys are normalized and rotated. */
export interface QueriesKeysValues {
  readonly queries: Value
  readonly keys: Value
  readonly values: Value
}

/** Splits, normalizes and rotates heads by nodes of their own. */
export const turnedHeads = (
  building: Building,
  { layer, products, rotation }: Heads,
): QueriesKeysValues => {
  const { graph, config, weights } = building
  const { heads, kvHeads, headSize } = config
  const [queries, keys, values] = products.apart()
  const normalized = (value: Value, count: number, part: "queries" | "keys"): Value => {
    if (!config.headNorms) return value
    const apart = graph.node("Reshape", [value, graph.ints([0, 0, count, headSize])])
    return graph.node("Reshape", [
      plainNorm(building, apart, weights.norm(layer, part)),
      graph.ints([0, 0, count * headSize]),
    ])
  }
  const rotated = (value: Value, count: number): Value => {
    if (!rotation) return value
    const { positions, tables } = rotation
    return graph.fused("RotaryEmbedding", [value, positions, tables.cos, tables.sin], {
      num_heads: count,
      interleaved: 0,
      ...(tables.dimensions < headSize && { rotary_embedding_dim: tables.dimensions }),
    })
  }
  return {
    keys: rotated(normalized(keys!, kvHeads, "keys"), kvHeads),
    queries: rotated(normalized(queries!, heads, "queries"), heads),
    values: values!,
  }
}
