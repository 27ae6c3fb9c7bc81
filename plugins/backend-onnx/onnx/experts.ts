import type { ExpertMatrix } from "../architectures/tensor-names.ts"
import type { Building } from "./building.ts"
import type { GraphBuilder, Value } from "./graph-builder.ts"
import { linear } from "./linear.ts"
import { gatedProducts } from "./products.ts"

const slice = (graph: GraphBuilder, value: Value, from: number, to: number, axis: number) =>
  graph.node("Slice", [value, graph.ints([from]), graph.ints([to]), graph.ints([axis])])

const splitEvenly = (graph: GraphBuilder, value: Value, count: number, axis: number) =>
  graph.split(
    value,
    graph.ints(new Array<number>(count).fill(1)),
    Array.from({ length: count }, () => graph.name("part")),
    axis,
  )

/** What the tokens `x [T, width]` go to: experts and their weights, `[T, used]`. */
const route = ({ graph, config, weights }: Building, layer: number, x: Value) => {
  const { count, used, isNormalized } = config.experts!
  // the first token again: a product of a single row rounds differently
  const rows = graph.node("Unsqueeze", [
    graph.concat([x, slice(graph, x, 0, 1, 0)], 0),
    graph.ints([0]),
  ])
  const scores = slice(graph, linear(graph, rows, weights.router(layer), "fp32"), 0, -1, 1)
  const probabilities = graph.node(
    "Softmax",
    [graph.node("Reshape", [scores, graph.ints([-1, count])])],
    { attributes: { axis: -1 } },
  )
  const [best, chosen] = graph.nodeWith(
    "TopK",
    [probabilities, graph.ints([used])],
    [graph.name("best"), graph.name("chosen")],
  )
  if (!isNormalized) return { best: best!, chosen: chosen! }
  const sum = graph.node("ReduceSum", [best!, graph.ints([-1])], { attributes: { keepdims: 1 } })
  return { best: graph.node("Div", [best!, sum]), chosen: chosen! }
}

/** The choices of all tokens, sorted by expert. */
interface Sorted {
  /** Numbers of the choices (token * used + rank), in the order of their experts. */
  readonly order: Value
  /** For each expert: the choices that it serves, and whether there is any. */
  readonly choices: readonly Value[]
  readonly isUsed: readonly Value[]
}

const sorted = (graph: GraphBuilder, chosen: Value, count: number): Sorted => {
  const flat = graph.node("Reshape", [chosen, graph.ints([-1])])
  const all = graph.node("Shape", [flat])
  const [, order] = graph.nodeWith(
    "TopK",
    [flat, all],
    [graph.name("experts"), graph.name("order")],
    { attributes: { largest: 0 } },
  )
  const experts = graph.ints(Array.from({ length: count }, (_, expert) => expert))
  const matches = graph.node("Equal", [graph.node("Unsqueeze", [experts, graph.ints([1])]), flat])
  const counts = graph.node(
    "ReduceSum",
    [graph.node("Cast", [matches], { attributes: { to: 7 } }), graph.ints([1])],
    { attributes: { keepdims: 0 } },
  )
  const choices = graph.split(
    order!,
    counts,
    Array.from({ length: count }, () => graph.name("choices")),
    0,
  )
  const isUsed = splitEvenly(graph, graph.node("Greater", [counts, graph.ints(0)]), count, 0)
  return { order: order!, choices, isUsed }
}

/** What an expert makes of the tokens of these choices, `[choices, width]`. */
const expert = (
  building: Building,
  layer: number,
  index: number,
  x: Value,
  choices: Value,
): Value => {
  const { graph, config, weights, precision } = building
  const matrix = (part: ExpertMatrix) => weights.expert(layer, index, part)
  // the first one again: a token has the same bits whether it is the only one here or not
  const rows = graph.concat([choices, slice(graph, choices, 0, 1, 0)], 0)
  const tokens = graph.node("Div", [rows, graph.ints(config.experts!.used)])
  const inputs = graph.node("Unsqueeze", [
    graph.node("Gather", [x, tokens], { attributes: { axis: 0 } }),
    graph.ints([0]),
  ])
  const hidden = gatedProducts(building, [matrix("gate"), matrix("up")], (stack) =>
    linear(graph, inputs, stack, precision),
  )
  const down = linear(graph, hidden, matrix("down"), precision)
  return slice(graph, graph.node("Squeeze", [down, graph.ints([0])]), 0, -1, 0)
}

/**
 * A mixture of experts over `normed [B, S, width]`. Only experts that some token goes to are
 * computed; each token adds up its experts in the order of their weights, whoever else they serve.
 */
export const mixture = (building: Building, layer: number, normed: Value): Value => {
  const { graph, config } = building
  const { count, used } = config.experts!
  const x = graph.node("Reshape", [normed, graph.ints([-1, config.width])])
  const { best, chosen } = route(building, layer, x)
  const { order, choices, isUsed } = sorted(graph, chosen, count)
  const outputs = choices.map((own, index) =>
    graph.either(
      isUsed[index]!,
      () => expert(building, layer, index, x, own),
      () => slice(graph, x, 0, 0, 0),
    ),
  )
  const places = graph.node("Unsqueeze", [order, graph.ints([1])])
  const together = graph.concat(outputs, 0)
  // every place is written, so what is there before does not matter
  const byToken = graph.node("Reshape", [
    graph.node("ScatterND", [together, places, together]),
    graph.ints([-1, used, config.width]),
  ])
  const weighted = graph.node("Mul", [byToken, graph.node("Unsqueeze", [best, graph.ints([2])])])
  const [first, ...rest] = splitEvenly(graph, weighted, used, 1)
  const sum = rest.reduce((total, one) => graph.node("Add", [total, one]), first!)
  return graph.node("Reshape", [sum, graph.node("Shape", [normed])])
}
