import type { DecoderConfig } from "../architectures/decoder-config.ts"
import type { GraphBuilder, Value } from "./graph-builder.ts"

const masked = -1e9

/** What all layers share: sizes of this pass, and masks. */
export interface AttentionFrame {
  /** Several new tokens in each row: a chunk of a prompt, or draft tokens. */
  readonly isChunk: Value
  /**
   * What the tokens of layers with this sliding window see, booleans `[B,1,S,P+1]`: the positions of
   * the row, then the token itself; undefined: full attention.
   */
  seenIn(window: number | undefined): Value
  /** [P, 1], to split probabilities into earlier positions and the token itself. */
  readonly parts: Value
  /** Where new keys and values belong among the cached ones, `[B,KV,S,3]`. */
  readonly places: Value
  /** The column of each query's own token, `[B,KV,G*S,1]`. */
  readonly ownColumns: Value
  /** Shapes [B, heads, S, P+1], [B, KV, G*S, P+1], [B, KV, G, S, headSize], [B, heads, S, headSize]. */
  readonly shapes: {
    readonly perHead: Value
    readonly perKey: Value
    readonly outGrouped: Value
    readonly outPerHead: Value
  }
}

type Sizes = Pick<DecoderConfig, "heads" | "kvHeads" | "headSize" | "attentionScale">

const range = (graph: GraphBuilder, count: Value): Value =>
  graph.node("Range", [
    graph.ints(0),
    graph.node("Squeeze", [count, graph.ints([0])]),
    graph.ints(1),
  ])

interface Extent {
  /** One element each. */
  readonly batch: Value
  readonly fresh: Value
  readonly past: Value
  /** Positions of the new tokens, `[B,1,S,1]`. */
  readonly positions: Value
}

/** A token sees itself and all positions before it; a sliding window hides those too far back. */
const seenPositions = (
  graph: GraphBuilder,
  { batch, fresh, past, positions }: Extent,
  window: number | undefined,
): Value => {
  const columns = range(graph, past)
  const before = graph.node("Less", [columns, positions])
  const near =
    window === undefined
      ? before
      : graph.node("And", [
          before,
          graph.node("Less", [graph.node("Sub", [positions, columns]), graph.ints(window)]),
        ])
  const one = graph.ints([1])
  const always = graph.node("Less", [graph.ints(0), graph.ints(1)])
  const own = graph.node("Expand", [always, graph.concat([batch, one, fresh, one], 0)])
  return graph.concat([near, own], 3)
}

/**
 * Scores of what is not seen are replaced: what another sequence has left there may have any score,
 * also one that no summand would hide.
 */
const weightsOf = (graph: GraphBuilder, scores: Value, seen: Value): Value =>
  graph.node("Softmax", [graph.node("Where", [seen, scores, graph.floats(masked)])], {
    attributes: { axis: -1 },
  })

/** Indices [row, head, position] of new keys and values among the cached ones. */
const placesOf = (graph: GraphBuilder, kvHeads: number, extent: Extent): Value => {
  const { batch, fresh, positions } = extent
  const shape = graph.concat([batch, graph.ints([kvHeads]), fresh, graph.ints([1])], 0)
  const rows = graph.node("Unsqueeze", [range(graph, batch), graph.ints([1, 2, 3])])
  const heads = graph.node("Unsqueeze", [range(graph, graph.ints([kvHeads])), graph.ints([1, 2])])
  const expanded = [rows, heads, positions].map((part) => graph.node("Expand", [part, shape]))
  return graph.concat(expanded, 3)
}

export const attentionFrame = (
  graph: GraphBuilder,
  { heads, kvHeads, headSize }: Sizes,
  x: Value,
  pastKeys: Value,
): AttentionFrame => {
  const size = (value: Value, axis: number) =>
    graph.node("Shape", [value], { attributes: { start: axis, end: axis + 1 } })
  const [batch, fresh, past] = [size(x, 0), size(x, 1), size(pastKeys, 2)]
  const lengths = graph.node("Unsqueeze", ["past_lens", graph.ints([1, 2, 3])])
  const steps = graph.node("Unsqueeze", [range(graph, fresh), graph.ints([1])])
  const extent = { batch, fresh, past, positions: graph.node("Add", [lengths, steps]) }
  const one = graph.ints([1])
  const all = graph.node("Add", [past, one])
  const groups = graph.ints([heads / kvHeads])
  const keys = graph.ints([kvHeads])
  const width = graph.ints([headSize])
  const shape = (...parts: readonly Value[]) => graph.concat(parts, 0)
  const columns = graph.node("Expand", [
    graph.node("Unsqueeze", [extent.positions, graph.ints([1])]),
    shape(batch, keys, groups, fresh, one),
  ])
  const seen = new Map<number | undefined, Value>()
  return {
    isChunk: graph.node("Greater", [
      graph.node("Squeeze", [fresh, graph.ints([0])]),
      graph.ints(1),
    ]),
    seenIn: (window) => {
      const positions = seen.get(window) ?? seenPositions(graph, extent, window)
      seen.set(window, positions)
      return positions
    },
    parts: shape(past, one),
    places: placesOf(graph, kvHeads, extent),
    ownColumns: graph.node("Reshape", [columns, graph.ints([0, kvHeads, -1, 1])]),
    shapes: {
      perHead: shape(batch, graph.ints([heads]), fresh, all),
      perKey: shape(batch, keys, graph.node("Mul", [groups, fresh]), all),
      outGrouped: shape(batch, keys, groups, fresh, width),
      outPerHead: shape(batch, graph.ints([heads]), fresh, width),
    },
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

const scorer =
  (graph: GraphBuilder, { attentionScale }: Sizes) =>
  (queries: Value, keys: Value) =>
    graph.matmul(queries, keys, { transposed: 4, alpha: attentionScale })

/** The weights of the earlier positions, and those of the token itself. */
const splitWeights = (graph: GraphBuilder, frame: AttentionFrame, weights: Value) =>
  graph.split(weights, frame.parts, [graph.name("wp"), graph.name("wo")], 3) as readonly [
    Value,
    Value,
  ]

/**
 * One new token in each row: earlier positions are read from the cache where it is, as copying it
 * would cost more than everything else. A query of its own for each key head is
 * computed twice: a matrix product of a single row rounds differently.
 */
const stepAttention = (
  graph: GraphBuilder,
  sizes: Sizes,
  frame: AttentionFrame,
  input: AttentionInput,
): Value => {
  const { heads, kvHeads, headSize } = sizes
  const split = (value: Value, rows: number) =>
    graph.node("Reshape", [value, graph.ints([0, kvHeads, rows, headSize])])
  const score = scorer(graph, sizes)
  const single = heads === kvHeads
  const own = split(input.queries, heads / kvHeads)
  const queries = single ? graph.concat([own, own], 2) : own
  const scores = [score(queries, input.past.keys), score(queries, split(input.keys, 1))]
  const weights = weightsOf(graph, graph.concat(scores, 3), frame.seenIn(input.window))
  const [earlier, itself] = splitWeights(graph, frame, weights)
  const sum = graph.node("Add", [
    graph.node("MatMul", [earlier, input.past.values]),
    graph.node("Mul", [itself, split(input.values, 1)]),
  ])
  const first = single
    ? graph.node("Slice", [sum, graph.ints([0]), graph.ints([1]), graph.ints([2])])
    : sum
  return graph.node("Reshape", [first, graph.ints([0, 1, heads * headSize])])
}

/**
 * Several new tokens in each row, which see each other. Their keys and values are put where the
 * cache will have them, into a copy of it, so that every sum is the one that a step over a single
 * token has, bit by bit.
 */
const chunkAttention = (
  graph: GraphBuilder,
  sizes: Sizes,
  frame: AttentionFrame,
  input: AttentionInput,
): Value => {
  const { heads, kvHeads, headSize } = sizes
  const { shapes } = frame
  const split = (value: Value, count: number) =>
    graph.node("Transpose", [graph.node("Reshape", [value, graph.ints([0, 0, count, headSize])])], {
      attributes: { perm: [0, 2, 1, 3] },
    })
  const reshape = (value: Value, shape: Value) => graph.node("Reshape", [value, shape])
  const queries = reshape(split(input.queries, heads), graph.ints([0, kvHeads, -1, headSize]))
  const values = split(input.values, kvHeads)
  const placed = (cached: Value, fresh: Value) =>
    graph.node("ScatterND", [cached, frame.places, fresh])
  const scores = scorer(graph, sizes)(queries, placed(input.past.keys, split(input.keys, kvHeads)))
  const own = graph.node("GatherElements", [scores, frame.ownColumns], { attributes: { axis: 3 } })
  const perHead = reshape(graph.concat([scores, own], 3), shapes.perHead)
  const weights = weightsOf(graph, perHead, frame.seenIn(input.window))
  const [earlier, itself] = splitWeights(graph, frame, reshape(weights, shapes.perKey))
  const ownSum = graph.node("Mul", [
    reshape(itself, graph.ints([0, kvHeads, heads / kvHeads, -1, 1])),
    graph.node("Unsqueeze", [values, graph.ints([2])]),
  ])
  const sum = graph.node("Add", [
    reshape(graph.node("MatMul", [earlier, placed(input.past.values, values)]), shapes.outGrouped),
    ownSum,
  ])
  const back = graph.node("Transpose", [reshape(sum, shapes.outPerHead)], {
    attributes: { perm: [0, 2, 1, 3] },
  })
  return reshape(back, graph.ints([0, 0, heads * headSize]))
}

/**
 * Grouped-query attention (Ainslie et al., arXiv 2305.13245) over cached and new keys and values.
 * Returns `[B, S, heads*headSize]`. A row's numbers are the same, bit by bit, in any company, with
 * any padding and in chunks of any size: both ways add the products of the earlier positions in
 * their order, and that of the token itself at last.
 */
export const attention = (
  graph: GraphBuilder,
  sizes: Sizes,
  frame: AttentionFrame,
  input: AttentionInput,
): Value => {
  // what is seen belongs to the graph around the branches
  frame.seenIn(input.window)
  return graph.either(
    frame.isChunk,
    () => chunkAttention(graph, sizes, frame, input),
    () => stepAttention(graph, sizes, frame, input),
  )
}
