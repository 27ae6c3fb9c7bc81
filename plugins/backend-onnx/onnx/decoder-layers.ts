import type { LayerMatrix, LayerNorm } from "../architectures/tensor-names.ts"
import { adapterInputs, declareAdapters } from "./adapter-inputs.ts"
import type { Building } from "./building.ts"
import { mixture } from "./experts.ts"
import type { Value } from "./graph-builder.ts"
import type { Heads } from "./heads.ts"
import { isNativeLinear, linear } from "./linear.ts"
import { plainNorm } from "./norms.ts"
import { type ProductInput, productInput } from "./product-input.ts"
import { gatedProducts, type Product, type Products, products } from "./products.ts"
import { type RotaryTables, rotaryTables, sectioned } from "./rotary-tables.ts"

/** The residual stream: `pending` is added to `sum` by the next norm, in the same fused node. */
interface Stream {
  readonly sum: Value
  readonly pending: Value | undefined
}

const norm = (
  building: Building,
  weights: Float32Array,
  stream: Stream,
): { readonly normed: ProductInput; readonly stream: Stream } => {
  const { graph, config } = building
  const scale = graph.floats([...weights])
  const attributes = { epsilon: { float: config.normEpsilon } }
  const step = { x: stream.sum, inputs: [scale], attributes }
  if (stream.pending === undefined)
    return { normed: productInput(() => plainNorm(building, stream.sum, weights), step), stream }
  const { pending } = stream
  const sum = graph.name("sum")
  const byNodes = () => {
    const normed = graph.name("norm")
    graph.nodeWith(
      "SkipSimplifiedLayerNormalization",
      [stream.sum, pending, scale],
      [normed, "", "", sum],
      { attributes, domain: "com.microsoft" },
    )
    return normed
  }
  return {
    normed: productInput(byNodes, { ...step, inputs: [scale, pending], sum }),
    stream: { sum, pending: undefined },
  }
}

/** Multiplies `x` by some of these matrices of a layer, with biases and adapters. */
const productOf =
  (building: Building, layer: number, parts: readonly LayerMatrix[], x: ProductInput): Product =>
  (matrix, from, to) => {
    const { graph, weights, precision } = building
    const group = parts.slice(from, to)
    const adapters = building.adapters
      ? adapterInputs(graph, { layer, parts: group, ...matrix }, isNativeLinear(graph, precision))
      : undefined
    const isOnly = group.length === parts.length
    return linear(graph, isOnly ? x : x.value(), matrix, precision, {
      bias: weights.bias(layer, group),
      adapters,
    })
  }

/** The products of matrices of a layer with the same input. */
const project = (
  building: Building,
  layer: number,
  parts: readonly LayerMatrix[],
  x: ProductInput,
): Products => {
  const matrices = parts.map((part) => building.weights.matrix(layer, part))
  return products(building, matrices, productOf(building, layer, parts, x))
}

/** The product of one matrix of a layer, normalized where the architecture does that. */
const output = (
  building: Building,
  layer: number,
  [matrix, outerNorm]: readonly [LayerMatrix, LayerNorm],
  x: ProductInput,
): Value => {
  const { config, weights } = building
  const product = project(building, layer, [matrix], x).groups[0]!
  return config.outerNorms ? plainNorm(building, product, weights.norm(layer, outerNorm)) : product
}

/** How a graph runs the layers of a decoder. */
export interface LayersInput {
  /** Embedded tokens, `[B, S, width]`. */
  readonly x: Value
  /**
   * Positions `[B, S]`, or that of the first token of all rows, `[1]`; of decoders with sections
   * `[3, B, S]`; int64.
   */
  readonly positions: Value
  /** Builds the attention of a layer, `[B, S, heads*headSize]`. */
  attend(heads: Heads): Value
  /** Called before each layer, and after the last one. */
  progress(doneLayers: number): void
}

const selfAttention = (
  building: Building,
  layer: number,
  { positions, attend }: LayersInput,
  tables: RotaryTables | undefined,
  normed: ProductInput,
): Value => {
  const attended = attend({
    layer,
    products: project(building, layer, ["q", "k", "v"], normed),
    rotation: tables && { tables, positions },
  })
  return output(
    building,
    layer,
    ["out", "afterAttention"],
    productInput(() => attended),
  )
}

const feedForward = (building: Building, layer: number, normed: ProductInput): Value => {
  const { config, weights } = building
  if (config.experts?.layers[layer]) return mixture(building, layer, normed.value())
  const hidden = gatedProducts(
    building,
    [weights.matrix(layer, "gate"), weights.matrix(layer, "up")],
    productOf(building, layer, ["gate", "up"], normed),
  )
  return output(building, layer, ["down", "afterFeedForward"], hidden)
}

/** Builds all layers of a decoder; `seen` is given the stream before each of them. */
const allLayers = (
  building: Building,
  input: LayersInput,
  seen: (layer: number, states: Value) => void = () => {},
): Stream => {
  const { graph, config, weights } = building
  const tables = rotaryTables(graph, config)
  const { rotary, positions } = config.sections
    ? sectioned(graph, tables, config.sections, input.positions)
    : { rotary: tables, positions: input.positions }
  let stream: Stream = { sum: input.x, pending: undefined }
  for (let layer = 0; layer < config.layers; layer++) {
    input.progress(layer)
    const before = norm(building, weights.norm(layer, "beforeAttention"), stream)
    seen(layer, before.stream.sum)
    const between = norm(building, weights.norm(layer, "beforeFeedForward"), {
      sum: before.stream.sum,
      pending: selfAttention(
        building,
        layer,
        { ...input, positions },
        rotary[layer],
        before.normed,
      ),
    })
    stream = { sum: between.stream.sum, pending: feedForward(building, layer, between.normed) }
  }
  declareAdapters(graph)
  input.progress(config.layers)
  return stream
}

/** Builds all layers of a decoder and its last norm: the states of the tokens, `[B, S, width]`. */
export const decoderStates = (building: Building, input: LayersInput): Value =>
  norm(building, building.weights.finalNorm(), allLayers(building, input)).normed.value()

/**
 * Builds all layers of a decoder, without its last norm. Returns the states `[B, S, width]` after so
 * many layers, in the order of `counts`.
 */
export const statesAfter = (
  building: Building,
  input: LayersInput,
  counts: readonly number[],
): readonly Value[] => {
  const { graph, config } = building
  const states = new Map<number, Value>()
  const { sum, pending } = allLayers(building, input, (layer, value) => states.set(layer, value))
  states.set(config.layers, pending === undefined ? sum : graph.node("Add", [sum, pending]))
  return counts.map((count) => states.get(count)!)
}
