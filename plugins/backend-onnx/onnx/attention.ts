import type { DecoderConfig } from "../architectures/decoder-config.ts"
import type { GraphBuilder, Value } from "./graph-builder.ts"

const masked = -1e9

/** What all layers share: sizes of this pass and additive masks `[B,1,1,S,P+S]`. */
export interface AttentionFrame {
  /** The mask of layers with this sliding window; undefined: full attention. */
  maskFor(window: number | undefined): Value
  /** [P, S], to split probabilities into cached and new. */
  readonly parts: Value
  /** Shapes of the scores: [B, KV, G, S, P+S] and [B, KV, G*S, P+S]. */
  readonly grouped: Value
  readonly folded: Value
  /** [B, heads, S, headSize] */
  readonly perHead: Value
}

type Sizes = Pick<DecoderConfig, "heads" | "kvHeads" | "headSize" | "attentionScale">

const concat = (graph: GraphBuilder, parts: readonly Value[], axis: number) =>
  graph.node("Concat", parts, { attributes: { axis } })

interface Extent {
  /** One element each. */
  readonly batch: Value
  readonly fresh: Value
  readonly past: Value
}

/**
 * Cached position p is visible if it is below the row's `past_lens`; new position s sees the new
 * ones up to itself (causal). A sliding window hides those too far back.
 */
const additiveMask = (
  graph: GraphBuilder,
  { batch, fresh, past }: Extent,
  window: number | undefined,
): Value => {
  const range = (count: Value) =>
    graph.node("Range", [
      graph.ints(0),
      graph.node("Squeeze", [count, graph.ints([0])]),
      graph.ints(1),
    ])
  const additive = (visible: Value) =>
    graph.node("Where", [visible, graph.floats(0), graph.floats(masked)])
  const expand = (mask: Value, last: Value) =>
    graph.node("Expand", [
      mask,
      concat(graph, [batch, graph.ints([1]), graph.ints([1]), fresh, last], 0),
    ])
  const near = (visible: Value, queries: Value, keys: Value): Value =>
    window === undefined
      ? visible
      : graph.node("And", [
          visible,
          graph.node("Less", [graph.node("Sub", [queries, keys]), graph.ints(window)]),
        ])
  const [cached, steps] = [range(past), range(fresh)]
  const ownSteps = graph.node("Unsqueeze", [steps, graph.ints([1])])
  const lengths = graph.node("Unsqueeze", ["past_lens", graph.ints([1, 2, 3, 4])])
  const overPast = near(
    graph.node("Less", [cached, lengths]),
    graph.node("Add", [lengths, ownSteps]),
    cached,
  )
  const causal = near(graph.node("LessOrEqual", [steps, ownSteps]), ownSteps, steps)
  return concat(graph, [expand(additive(overPast), past), expand(additive(causal), fresh)], 4)
}

export const attentionFrame = (
  graph: GraphBuilder,
  { heads, kvHeads, headSize }: Sizes,
  x: Value,
  pastKeys: Value,
): AttentionFrame => {
  const size = (value: Value, axis: number) =>
    graph.node("Shape", [value], { attributes: { start: axis, end: axis + 1 } })
  const extent = { batch: size(x, 0), fresh: size(x, 1), past: size(pastKeys, 2) }
  const { batch, fresh, past } = extent
  const all = graph.node("Add", [past, fresh])
  const groups = graph.ints([heads / kvHeads])
  const perKey = graph.ints([kvHeads])
  const masks = new Map<number | undefined, Value>()
  return {
    maskFor: (window) => {
      const mask = masks.get(window) ?? additiveMask(graph, extent, window)
      masks.set(window, mask)
      return mask
    },
    parts: concat(graph, [past, fresh], 0),
    grouped: concat(graph, [batch, perKey, groups, fresh, all], 0),
    folded: concat(graph, [batch, perKey, graph.node("Mul", [groups, fresh]), all], 0),
    perHead: concat(graph, [batch, graph.ints([heads]), fresh, graph.ints([headSize])], 0),
  }
}

/**
 * `queries`, `keys` and `values` are `[B, S, heads*headSize]`; queries and keys are rotated
 * already.
 */
export interface AttentionInput {
  readonly queries: Value
  readonly keys: Value
  readonly values: Value
  readonly past: { readonly keys: Value; readonly values: Value }
  readonly window: number | undefined
}

/**
 * Grouped-query attention (Ainslie et al., arXiv 2305.13245) over cached and new keys and values,
 * which stay apart so that the cache is never copied. Returns `[B, S, heads*headSize]`.
 */
export const attention = (
  graph: GraphBuilder,
  { heads, kvHeads, headSize, attentionScale }: Sizes,
  frame: AttentionFrame,
  input: AttentionInput,
): Value => {
  const split = (value: Value, count: number) =>
    graph.node("Transpose", [graph.node("Reshape", [value, graph.ints([0, 0, count, headSize])])], {
      attributes: { perm: [0, 2, 1, 3] },
    })
  const queries = graph.node("Reshape", [
    split(input.queries, heads),
    graph.ints([0, kvHeads, -1, headSize]),
  ])
  const score = (keys: Value) =>
    graph.fused("FusedMatMul", [queries, keys], {
      transB: 1,
      alpha: { float: attentionScale },
    })
  const scores = concat(graph, [score(input.past.keys), score(split(input.keys, kvHeads))], 3)
  const biased = graph.node("Add", [
    graph.node("Reshape", [scores, frame.grouped]),
    frame.maskFor(input.window),
  ])
  const weights = graph.node("Reshape", [
    graph.node("Softmax", [biased], { attributes: { axis: -1 } }),
    frame.folded,
  ])
  const [overPast, overNew] = graph.nodeWith(
    "Split",
    [weights, frame.parts],
    [graph.name("pp"), graph.name("pn")],
    { attributes: { axis: 3 } },
  )
  const sum = graph.node("Add", [
    graph.node("MatMul", [overPast!, input.past.values]),
    graph.node("MatMul", [overNew!, split(input.values, kvHeads)]),
  ])
  const back = graph.node("Transpose", [graph.node("Reshape", [sum, frame.perHead])], {
    attributes: { perm: [0, 2, 1, 3] },
  })
  return graph.node("Reshape", [back, graph.ints([0, 0, heads * headSize])])
}
