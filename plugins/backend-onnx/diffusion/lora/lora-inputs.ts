import type { Sizes } from "../../encoding/encoder-parts.ts"
import type { GraphBuilder, Value } from "../../onnx/graph-builder.ts"
import type { Port } from "../../onnx/onnx-session.ts"
import type { PartBuilding } from "../graph/layers.ts"

/** Increment it whenever graphs with LoRAs must be built again. */
export const loraGraphVersion = 1

export const strengthInput = "lora.strength"

/** Names of the inputs of a layer. */
export const loraNames = (layer: string) => ({ a: `lora.${layer}.a`, b: `lora.${layer}.b` })

/** A linear layer that takes a LoRA. */
export interface LoraLayer extends Sizes {
  readonly name: string
}

/** The layers of a graph that take LoRAs, by the names and shapes of its inputs. */
export const loraLayersIn = (inputs: readonly Port[]): readonly LoraLayer[] => {
  const sizes = new Map(inputs.map(({ name, shape }) => [name, shape]))
  return inputs.flatMap(({ name }) => {
    const found = /^lora\.(.+)\.a$/.exec(name)
    if (!found) return []
    const { a, b } = loraNames(found[1]!)
    return [{ name: found[1]!, rows: Number(sizes.get(b)![0]), columns: Number(sizes.get(a)![1]) }]
  })
}

/**
 * What a LoRA makes of `x`: `strength x a^T b^T`, added to the product. In: `a [R, columns]`, `b
 * [rows, R]` and the strength, `[1]`; without one they are zeros of rank 1. A run has one LoRA only, so that
 * its ranks needn't be in tiles as those of a decoder are.
 */
const plusLora = (
  graph: GraphBuilder,
  name: string,
  x: Value,
  product: Value,
  { rows, columns }: Sizes,
): Value => {
  const { a, b } = loraNames(name)
  graph.input(a, "float", [`R_${name}`, columns])
  graph.input(b, "float", [rows, `R_${name}`])
  const ranks = graph.matmul(x, a, { transposed: 2 })
  const scaled = graph.node("Mul", [ranks, strengthInput])
  return graph.node("Add", [product, graph.matmul(scaled, b, { transposed: 2 })])
}

/** A building whose linear layers take LoRAs. `nameOf`: what files call a layer of the graph. */
export const takingLoras = (
  building: PartBuilding,
  nameOf: (layer: string) => string,
): PartBuilding => {
  const { graph } = building
  graph.input(strengthInput, "float", [1])
  return {
    ...building,
    adapted: (name, x, product, sizes) => plusLora(graph, nameOf(name), x, product, sizes),
  }
}
