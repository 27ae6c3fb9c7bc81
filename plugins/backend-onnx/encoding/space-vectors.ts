import { join } from "node:path"
import type { Value } from "../onnx/graph-builder.ts"
import { explaining } from "../weights/model-file-error.ts"
import { openSafetensorsFolder } from "../weights/safetensors-folder.ts"
import type { EncoderBatch, EncoderBuilding, EncoderModel } from "./encoder-model.ts"
import { activated, dense, layerNorm } from "./encoder-parts.ts"
import type { EncoderHead } from "./families.ts"
import { pools } from "./pooling.ts"
import type { PoolingStep } from "./sentence-files.ts"
import { spaceDimensions, stackedRotations } from "./stacked-rotations.ts"

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
  const bounds = [[0], [head.width], [1]].map((at) => graph.ints(at))
  return spaceVectors(building, head.isCut ? graph.node("Slice", [x, ...bounds]) : x, head)
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
  return graph.matmul(unit(building, x), "map", { transposed: 2 })
}
