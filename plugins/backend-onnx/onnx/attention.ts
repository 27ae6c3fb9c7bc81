import type { GraphBuilder, Value } from "./graph-builder.ts"
import type { LlamaConfig } from "./llama-config.ts"

const masked = -1e9

/** What all layers share: the sizes of this call and the additive mask `[B,1,1,S,P+S]`. */
export interface AttentionFrame {
  readonly mask: Value
  /** [P, S], to split probabilities into cached and new. */
  readonly parts: Value
  /** Shapes of the scores: [B, KV, G, S, P+S] and [B, KV, G*S, P+S]. */
  readonly grouped: Value
  readonly folded: Value
  /** [B, heads, S, headSize] */
  readonly perHead: Value
}

const concat = (graph: GraphBuilder, parts: readonly Value[], axis: number) => graph.node("Concat", parts, { attributes: { axis } })

/** Cached position p is visible below the row's `past_lens`; new position s sees the new ones up to itself. */
export const attentionFrame = (graph: GraphBuilder, config: LlamaConfig, x: Value, pastKeys: Value): AttentionFrame => {
  const size = (value: Value, axis: number) => graph.node("Shape", [value], { attributes: { start: axis, end: axis + 1 } })
  const [batch, fresh, past] = [size(x, 0), size(x, 1), size(pastKeys, 2)]
  const range = (count: Value) => graph.node("Range", [graph.ints(0), graph.node("Squeeze", [count, graph.ints([0])]), graph.ints(1)])
  const additive = (visible: Value) => graph.node("Where", [visible, graph.floats(0), graph.floats(masked)])
  const expand = (mask: Value, last: Value) => graph.node("Expand", [mask, concat(graph, [batch, graph.ints([1]), graph.ints([1]), fresh, last], 0)])
  const steps = range(fresh)
  const lengths = graph.node("Unsqueeze", ["past_lens", graph.ints([1, 2, 3, 4])])
  const overPast = additive(graph.node("Less", [range(past), lengths]))
  const causal = additive(graph.node("LessOrEqual", [steps, graph.node("Unsqueeze", [steps, graph.ints([1])])]))
  const all = graph.node("Add", [past, fresh])
  const groups = graph.ints([config.heads / config.kvHeads])
  const kvHeads = graph.ints([config.kvHeads])
  return {
    mask: concat(graph, [expand(overPast, past), expand(causal, fresh)], 4),
    parts: concat(graph, [past, fresh], 0),
    grouped: concat(graph, [batch, kvHeads, groups, fresh, all], 0),
    folded: concat(graph, [batch, kvHeads, graph.node("Mul", [groups, fresh]), all], 0),
    perHead: concat(graph, [batch, graph.ints([config.heads]), fresh, graph.ints([config.headSize])], 0),
  }
}

export interface LayerCache {
  readonly keys: Value
  readonly values: Value
}

/**
 * Grouped-query attention over the cached keys and values and the new ones, kept apart so that the cache is never copied.
 * `q`, `k`, `v` are [B, S, heads*size], rotated already; answers [B, S, heads*size].
 */
export const attention = (graph: GraphBuilder, config: LlamaConfig, frame: AttentionFrame, q: Value, k: Value, v: Value, past: LayerCache): Value => {
  const { heads, kvHeads, headSize } = config
  const split = (value: Value, count: number) =>
    graph.node("Transpose", [graph.node("Reshape", [value, graph.ints([0, 0, count, headSize])])], { attributes: { perm: [0, 2, 1, 3] } })
  const queries = graph.node("Reshape", [split(q, heads), graph.ints([0, kvHeads, -1, headSize])])
  const score = (keys: Value) => graph.fused("FusedMatMul", [queries, keys], { transB: 1, alpha: { float: 1 / Math.sqrt(headSize) } })
  const scores = concat(graph, [score(past.keys), score(split(k, kvHeads))], 3)
  const biased = graph.node("Add", [graph.node("Reshape", [scores, frame.grouped]), frame.mask])
  const weights = graph.node("Reshape", [graph.node("Softmax", [biased], { attributes: { axis: -1 } }), frame.folded])
  const [overPast, overNew] = graph.nodeWith("Split", [weights, frame.parts], [graph.name("pp"), graph.name("pn")], { attributes: { axis: 3 } })
  const sum = graph.node("Add", [graph.node("MatMul", [overPast!, past.values]), graph.node("MatMul", [overNew!, split(v, kvHeads)])])
  const back = graph.node("Transpose", [graph.node("Reshape", [sum, frame.perHead])], { attributes: { perm: [0, 2, 1, 3] } })
  return graph.node("Reshape", [back, graph.ints([0, 0, heads * headSize])])
}
