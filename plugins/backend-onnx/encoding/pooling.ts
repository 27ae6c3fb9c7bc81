import { join } from "node:path"
import type { Value } from "../onnx/graph-builder.ts"
import { explaining } from "../weights/model-file-error.ts"
import { openSafetensorsFolder } from "../weights/safetensors-folder.ts"
import type { EncoderBatch, EncoderBuilding, EncoderModel } from "./encoder-model.ts"
import { activated, dense, layerNorm } from "./encoder-parts.ts"
import type { EncoderHead } from "./families.ts"
import type { PoolingMode, PoolingStep } from "./sentence-files.ts"
import { spaceDimensions, stackedRotations } from "./stacked-rotations.ts"

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
const pools: Readonly<Record<PoolingMode, Pool>> = {
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

/** `x` divided by its Euclidean norm. */
const unit = ({ graph }: EncoderBuilding, x: Value): Value =>
  graph.node("LpNormalization", [x], { attributes: { axis: -1, p: 2 } })

/** A dense layer or norm, whose weights are in a folder of their own. */
const stepOf = (building: EncoderBuilding, folder: string, step: PoolingStep, x: Value): Value => {
  if (step.type === "normalize") return unit(building, x)
  const path = join(folder, step.folder)
  const file = openSafetensorsFolder(path)
  try {
    return explaining(path, () => {
      // small, and rounding them would cost what their size doesn't pay
      const own = { ...building, file, precision: "fp32" as const }
      if (step.type === "norm")
        return layerNorm(own, "norm", x, { width: step.width, epsilon: 1e-5 })
      const out = dense(own, "linear", x, { rows: step.outputs, columns: step.inputs })
      return step.activation === "identity" ? out : activated(own, step.activation, out)
    })
  } finally {
    file.close()
  }
}

interface Pooled {
  readonly model: EncoderModel
  readonly head: Extract<EncoderHead, { readonly type: "vector" }>
  readonly batch: EncoderBatch
  readonly states: Value
}

/**
 * Pools, then what the model's files name after it, L2 normalization, and the fixed map into the
 * embedding space: `[B, 2048]`.
 */
export const pooledVectors = (
  building: EncoderBuilding,
  folder: string,
  { model, head, batch, states }: Pooled,
): Value => {
  const { graph } = building
  const pooled = head.pooling.map((mode) => pools[mode](building, batch, states))
  let x = model.pooled
    ? model.pooled.build(building, batch, states)
    : pooled.length > 1
      ? graph.concat(pooled, -1)
      : pooled[0]!
  for (const step of head.steps) x = stepOf(building, folder, step, x)
  return spaceVectors(building, x, head)
}

/** Vectors `[B,width]` as unit vectors of the embedding space, `[B,2048]`. */
export const spaceVectors = (
  building: EncoderBuilding,
  x: Value,
  { width, isMatryoshka }: { readonly width: number; readonly isMatryoshka: boolean },
): Value => {
  const { graph } = building
  const region = graph.weights("map", "float", [spaceDimensions, width])
  graph.store.write(region, 0, stackedRotations(width, spaceDimensions, isMatryoshka))
  return graph.fused("FusedMatMul", [unit(building, x), "map"], { transB: 1 })
}
