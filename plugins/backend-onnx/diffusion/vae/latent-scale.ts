import type { Value } from "../../onnx/graph-builder.ts"
import { vectorOf } from "../../weights/matrix.ts"
import { perChannel } from "../graph/convolution.ts"
import type { PartBuilding } from "../graph/layers.ts"
import type { VaeConfig } from "./vae-config.ts"

/** The mean and the deviation of each channel of the squares of four latents. */
const statistics = (
  building: PartBuilding,
  channels: number,
  epsilon: number,
): { readonly mean: Value; readonly deviation: Value } => {
  const { graph, file } = building
  const constant = (values: Float32Array) =>
    perChannel(building, graph.floats([...values]), channels)
  const variance = vectorOf(file, "bn.running_var", channels)
  return {
    mean: constant(vectorOf(file, "bn.running_mean", channels)),
    deviation: constant(variance.map((value) => Math.sqrt(value + epsilon))),
  }
}

/** The edges of `x [1,C,H,W]`, `[1]` each. */
const edgesOf = ({ graph }: PartBuilding, x: Value): readonly [rows: Value, columns: Value] => {
  const edge = (axis: number) =>
    graph.node("Shape", [x], { attributes: { start: axis, end: axis + 1 } })
  return [edge(2), edge(3)]
}

const turned = (
  { graph }: PartBuilding,
  x: Value,
  apart: readonly Value[],
  perm: readonly number[],
  together: readonly Value[],
): Value => {
  const split = graph.node("Reshape", [x, graph.concat(apart, 0)])
  const moved = graph.node("Transpose", [split], { attributes: { perm } })
  return graph.node("Reshape", [moved, graph.concat(together, 0)])
}

/** What the decoder reads of what a denoiser makes. */
export const unscaled = (building: PartBuilding, { form, latents }: VaeConfig, x: Value): Value => {
  const { graph } = building
  if (form.type === "scaled") {
    const grown = graph.node("Mul", [x, graph.floats(1 / form.scale)])
    return form.shift === 0 ? grown : graph.node("Add", [grown, graph.floats(form.shift)])
  }
  const { mean, deviation } = statistics(building, 4 * latents, form.epsilon)
  const own = graph.node("Add", [graph.node("Mul", [x, deviation]), mean])
  const [rows, columns] = edgesOf(building, own)
  const twice = (edge: Value) => graph.node("Mul", [edge, graph.ints([2])])
  return turned(
    building,
    own,
    [graph.ints([1, latents, 2, 2]), rows, columns],
    [0, 1, 4, 2, 5, 3],
    [graph.ints([1, latents]), twice(rows), twice(columns)],
  )
}

/** What a denoiser reads of what the encoder makes. */
export const scaled = (building: PartBuilding, { form, latents }: VaeConfig, x: Value): Value => {
  const { graph } = building
  if (form.type === "scaled") {
    const moved = form.shift === 0 ? x : graph.node("Sub", [x, graph.floats(form.shift)])
    return graph.node("Mul", [moved, graph.floats(form.scale)])
  }
  const two = graph.ints([2])
  const [rows, columns] = edgesOf(building, x).map((edge) => graph.node("Div", [edge, two]))
  const squares = turned(
    building,
    x,
    [graph.ints([1, latents]), rows!, two, columns!, two],
    [0, 1, 3, 5, 2, 4],
    [graph.ints([1, 4 * latents]), rows!, columns!],
  )
  const { mean, deviation } = statistics(building, 4 * latents, form.epsilon)
  return graph.node("Div", [graph.node("Sub", [squares, mean]), deviation])
}
