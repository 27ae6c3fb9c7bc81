import type { Value } from "../onnx/graph-builder.ts"
import type { EncoderBatch, EncoderBuilding } from "./encoder-model.ts"
import type { PoolingMode } from "./sentence-files.ts"

/** `weights [B,S]` times `states [B,S,width]`: `[B,width]`. */
const weighted = ({ graph }: EncoderBuilding, weights: Value, states: Value): Value =>
  graph.node("Squeeze", [
    graph.node("MatMul", [graph.node("Unsqueeze", [weights, graph.ints([1])]), states]),
    graph.ints([1]),
  ])

type Pool = (building: EncoderBuilding, batch: EncoderBatch, states: Value) => Value

/** Sums the states of the real tokens, divided by `divisor` of their number. */
const summed =
  (divisor: (graph: EncoderBuilding["graph"], count: Value) => Value): Pool =>
  (building, { lengths, real }, states) => {
    const { graph } = building
    const count = graph.node("Unsqueeze", [graph.toFloat(lengths), graph.ints([1])])
    return graph.node("Div", [weighted(building, real, states), divisor(graph, count)])
  }

/** Each pools `states [B,S,width]` over the tokens that are not padding: `[B,width]`. */
export const pools: Readonly<Record<PoolingMode, Pool>> = {
  cls: ({ graph }, _, states) =>
    graph.node("Gather", [states, graph.ints(0)], { attributes: { axis: 1 } }),
  max: ({ graph }, { mask }, states) =>
    graph.node(
      "ReduceMax",
      [
        graph.node("Add", [
          states,
          graph.node("Transpose", [graph.node("Squeeze", [mask, graph.ints([1])])], {
            attributes: { perm: [0, 2, 1] },
          }),
        ]),
      ],
      { attributes: { axes: [1], keepdims: 0 } },
    ),
  mean: summed((_, count) => count),
  mean_sqrt_len: summed((graph, count) => graph.node("Sqrt", [count])),
  weightedmean: (building, { positions, real }, states) => {
    const { graph } = building
    const places = graph.node("Add", [graph.toFloat(positions), graph.floats(1)])
    const weights = graph.node("Mul", [real, places])
    const sum = graph.node("ReduceSum", [weights, graph.ints([1])], { attributes: { keepdims: 1 } })
    return graph.node("Div", [weighted(building, weights, states), sum])
  },
  lasttoken: (building, { positions, lengths }, states) => {
    const { graph } = building
    const last = graph.node("Unsqueeze", [
      graph.node("Sub", [lengths, graph.ints(1)]),
      graph.ints([1]),
    ])
    // one 1 among zeros: the product is that state, bit by bit
    return weighted(building, graph.toFloat(graph.node("Equal", [positions, last])), states)
  },
}
