import type { EncoderBuilding } from "../encoding/encoder-model.ts"
import { activated, dense, layerNorm, lookup, table } from "../encoding/encoder-parts.ts"
import type { GraphBuilder, Value } from "../onnx/graph-builder.ts"
import { linear } from "../onnx/linear.ts"
import { matrixOf } from "../weights/matrix.ts"
import type { HearingConfig, Spectrogram } from "./hearing-config.ts"
import { melFilters } from "./mel-filters.ts"

/** Increment it whenever graphs built by earlier versions must be built again. */
export const hearingGraphVersion = 1

export const epsilon = 1e-5
export const hidden = -1e9

/** Writes a list of rows as a constant. */
const constant = (graph: GraphBuilder, rows: readonly Float32Array[], shape: readonly number[]) => {
  const name = graph.name("rows")
  const region = graph.weights(name, "float", shape)
  let at = 0
  for (const row of rows) {
    graph.store.write(region, at, row)
    at += row.byteLength
  }
  return name
}

/**
 * The graph of a spectrogram: Fourier transforms of windows (Hann), as convolutions with sines and
 * cosines. In: `samples [N]`. Out: `frames [bins, F]`, logarithms of power in base 10, 1e-10 at least.
 */
export const buildSpectrogram = (graph: GraphBuilder, sizes: Spectrogram): void => {
  const { window, hop, bins } = sizes
  const frequencies = window / 2 + 1
  const hann = (i: number) => 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / window)
  const waves = [Math.cos, Math.sin].flatMap((wave) =>
    Array.from({ length: frequencies }, (_, frequency) =>
      Float32Array.from(
        { length: window },
        (_, i) => hann(i) * wave((2 * Math.PI * ((frequency * i) % window)) / window),
      ),
    ),
  )
  graph.input("samples", "float", ["N"])
  const signal = graph.node("Reshape", ["samples", graph.ints([1, 1, -1])])
  const kernels = constant(graph, waves, [2 * frequencies, 1, window])
  const transformed = graph.node("Conv", [signal, kernels], {
    attributes: { strides: [hop], kernel_shape: [window] },
  })
  const flat = graph.node("Squeeze", [transformed, graph.ints([0])])
  const [real, imaginary] = graph.split(
    graph.node("Mul", [flat, flat]),
    graph.ints([frequencies, frequencies]),
    [graph.name("real"), graph.name("imaginary")],
    0,
  )
  const power = graph.node("Add", [real!, imaginary!])
  const filters = melFilters(sizes).map((row) => Float32Array.from(row))
  const mel = graph.matmul(constant(graph, filters, [bins, frequencies]), power)
  const logarithm = graph.node("Log", [graph.node("Max", [mel, graph.floats(1e-10)])])
  const tens = graph.node("Mul", [logarithm, graph.floats(1 / Math.LN10)])
  graph.output("frames", tens, "float", [bins, "F"])
}

const headsOf = (graph: GraphBuilder, x: Value, heads: number, size: number): Value =>
  graph.node("Transpose", [graph.node("Reshape", [x, graph.ints([0, -1, heads, size])])], {
    attributes: { perm: [0, 2, 1, 3] },
  })

/** Scaled dot-product attention of queries `[1,S,width]` to keys and values `[1,heads,T,size]`. */
const attended = (
  graph: GraphBuilder,
  queries: Value,
  [keys, values]: readonly [Value, Value],
  { width, heads }: { readonly width: number; readonly heads: number },
  mask?: Value,
): Value => {
  const size = width / heads
  const q = headsOf(graph, queries, heads, size)
  const scores = graph.matmul(q, keys, { transposed: 4, alpha: 1 / Math.sqrt(size) })
  const masked = mask === undefined ? scores : graph.node("Add", [scores, mask])
  const shares = graph.node("Softmax", [masked], { attributes: { axis: -1 } })
  const mixed = graph.node("Transpose", [graph.node("MatMul", [shares, values])], {
    attributes: { perm: [0, 2, 1, 3] },
  })
  return graph.node("Reshape", [mixed, graph.ints([0, -1, width])])
}

const convolved = (
  building: EncoderBuilding,
  name: string,
  x: Value,
  { inputs, width, stride }: { inputs: number; width: number; stride: number },
): Value => {
  const { graph } = building
  const kernels = table(building, `${name}.weight`, width, inputs, 3)
  const bias = table(building, `${name}.bias`, 1, width)
  const flat = graph.node("Reshape", [bias, graph.ints([width])])
  const out = graph.node("Conv", [x, kernels, flat], {
    attributes: { strides: [stride], pads: [1, 1], kernel_shape: [3] },
  })
  return graph.fused("Gelu", [out])
}

const fedForward = (
  building: EncoderBuilding,
  name: string,
  x: Value,
  {
    width,
    feedForward,
    activation,
  }: {
    width: number
    feedForward: number
    activation: HearingConfig["activation"]
  },
): Value => {
  const wide = dense(building, `${name}.fc1`, x, { rows: feedForward, columns: width })
  const active = activated(building, activation, wide)
  return dense(building, `${name}.fc2`, active, { rows: width, columns: feedForward })
}

/** A part of a layer: norm, what `of` makes of it, and the sum with what went in. */
const residual = (
  building: EncoderBuilding,
  norm: string,
  x: Value,
  width: number,
  of: (x: Value) => Value,
): Value => {
  const normed = layerNorm(building, norm, x, { width, epsilon })
  return building.graph.node("Add", [x, of(normed)])
}

const crossNames = (layer: number) => ({ keys: `cross.${layer}.k`, values: `cross.${layer}.v` })

export type EncoderSizes = Pick<
  HearingConfig,
  "width" | "states" | "spectrogram" | "encoder" | "activation"
>

/**
 * The states of the encoder `own`, `[1, states, width]`, before their last norm. In: `features [1,
 * bins, 2 states]`. `mask` is added to the scores.
 */
export const encoderStates = (
  building: EncoderBuilding,
  own: string,
  { width, states, spectrogram, encoder, activation }: EncoderSizes,
  mask?: Value,
): Value => {
  const { graph } = building
  const { heads, feedForward } = encoder
  const square = { rows: width, columns: width }
  graph.input("features", "float", [1, spectrogram.bins, 2 * states])
  const inputs = spectrogram.bins
  const first = convolved(building, `${own}.conv1`, "features", { inputs, width, stride: 1 })
  const second = convolved(building, `${own}.conv2`, first, { inputs: width, width, stride: 2 })
  const rows = graph.node("Transpose", [second], { attributes: { perm: [0, 2, 1] } })
  const places = table(building, `${own}.embed_positions.weight`, states, width)
  let x = graph.node("Add", [rows, places])
  for (let layer = 0; layer < encoder.layers; layer++) {
    const name = `${own}.layers.${layer}`
    x = residual(building, `${name}.self_attn_layer_norm`, x, width, (normed) => {
      const [q, k, v] = ["q", "k", "v"].map((part) =>
        dense(building, `${name}.self_attn.${part}_proj`, normed, square),
      )
      const kv = [k!, v!].map((part) => headsOf(graph, part, heads, width / heads))
      const mixed = attended(graph, q!, [kv[0]!, kv[1]!], { width, heads }, mask)
      return dense(building, `${name}.self_attn.out_proj`, mixed, square)
    })
    x = residual(building, `${name}.final_layer_norm`, x, width, (normed) =>
      fedForward(building, name, normed, { width, feedForward, activation }),
    )
  }
  return x
}

/**
 * The graph of the encoder, and of what the decoder reads of its states. In: `features [1, bins, 2
 * states]`. Out: keys and values `[1, heads, states, size]` of the decoder's layers.
 */
export const buildHearingEncoder = (
  building: EncoderBuilding,
  prefix: string,
  config: HearingConfig,
): void => {
  const { graph } = building
  const { width, states, decoder } = config
  const own = `${prefix}encoder`
  const square = { rows: width, columns: width }
  const x = encoderStates(building, own, config)
  const done = layerNorm(building, `${own}.layer_norm`, x, { width, epsilon })
  const size = width / decoder.heads
  for (let layer = 0; layer < decoder.layers; layer++) {
    const name = `${prefix}decoder.layers.${layer}.encoder_attn`
    const { keys, values } = crossNames(layer)
    for (const [output, part] of [
      [keys, "k"],
      [values, "v"],
    ] as const) {
      const made = dense(building, `${name}.${part}_proj`, done, square)
      const shape = [1, decoder.heads, states, size]
      graph.output(output, headsOf(graph, made, decoder.heads, size), "float", shape)
    }
  }
}

/** A token sees itself and all before it, but not the empty position 0. */
const causalMask = (graph: GraphBuilder, past: Value): Value => {
  const size = (value: Value, axis: number) =>
    graph.node("Squeeze", [
      graph.node("Shape", [value], { attributes: { start: axis, end: axis + 1 } }),
      graph.ints([0]),
    ])
  const [before, fresh] = [size(past, 2), size("ids", 1)]
  const all = graph.node("Add", [before, fresh])
  const range = (from: Value, to: Value) => graph.node("Range", [from, to, graph.ints(1)])
  const columns = range(graph.ints(0), all)
  const rows = graph.node("Unsqueeze", [range(before, all), graph.ints([1])])
  const isBefore = graph.node("LessOrEqual", [columns, rows])
  const isToken = graph.node("Greater", [columns, graph.ints(0)])
  const seen = graph.node("And", [isBefore, isToken])
  return graph.node("Where", [seen, graph.floats(0), graph.floats(hidden)])
}

/**
 * The graph of the decoder. In: `ids [1, S]`, `positions [1, S]`, of each layer the cached keys and
 * values `past.L.k [1, heads, P, size]`, whose first position is empty (P is 1 at first), and what
 * the encoder made; `wanted [N]`, which of the tokens logits are wanted of. Out: `logits [N,
 * vocabulary]` and `present.L.k [1, heads, P + S, size]`.
 */
export const buildHearingDecoder = (
  building: EncoderBuilding,
  prefix: string,
  config: HearingConfig,
): void => {
  const { graph, file, precision } = building
  const { width, states, vocabulary, contextTokens, decoder, activation } = config
  const { heads, layers, feedForward } = decoder
  const own = `${prefix}decoder`
  const square = { rows: width, columns: width }
  const size = width / heads
  graph.input("ids", "int64", [1, "S"])
  graph.input("positions", "int64", [1, "S"])
  graph.input("wanted", "int64", ["N"])
  for (let layer = 0; layer < layers; layer++) {
    const { keys, values } = crossNames(layer)
    for (const name of [keys, values]) graph.input(name, "float", [1, heads, states, size])
    for (const part of ["k", "v"])
      graph.input(`past.${layer}.${part}`, "float", [1, heads, "P", size])
  }
  const embeddings = `${own}.embed_tokens.weight`
  const words = lookup(building, embeddings, { rows: vocabulary, columns: width }, "ids")
  const places = table(building, `${own}.embed_positions.weight`, contextTokens, width)
  const mask = causalMask(graph, "past.0.k")
  let x = graph.node("Add", [words, graph.node("Gather", [places, "positions"])])
  for (let layer = 0; layer < layers; layer++) {
    const name = `${own}.layers.${layer}`
    x = residual(building, `${name}.self_attn_layer_norm`, x, width, (normed) => {
      const query = dense(building, `${name}.self_attn.q_proj`, normed, square)
      const kv = (["k", "v"] as const).map((part) => {
        const made = dense(building, `${name}.self_attn.${part}_proj`, normed, square)
        const fresh = headsOf(graph, made, heads, size)
        const all = graph.concat([`past.${layer}.${part}`, fresh], 2)
        graph.output(`present.${layer}.${part}`, all, "float", [1, heads, "T", size])
        return all
      })
      const mixed = attended(graph, query, [kv[0]!, kv[1]!], { width, heads }, mask)
      return dense(building, `${name}.self_attn.out_proj`, mixed, square)
    })
    x = residual(building, `${name}.encoder_attn_layer_norm`, x, width, (normed) => {
      const query = dense(building, `${name}.encoder_attn.q_proj`, normed, square)
      const { keys, values } = crossNames(layer)
      const mixed = attended(graph, query, [keys, values], { width, heads })
      return dense(building, `${name}.encoder_attn.out_proj`, mixed, square)
    })
    x = residual(building, `${name}.final_layer_norm`, x, width, (normed) =>
      fedForward(building, name, normed, { width, feedForward, activation }),
    )
  }
  const done = layerNorm(building, `${own}.layer_norm`, x, { width, epsilon })
  const chosen = graph.node("Gather", [done, "wanted"], { attributes: { axis: 1 } })
  // the head is the table of tokens
  const head = matrixOf(file, embeddings, { rows: vocabulary, columns: width })
  const logits = linear(graph, chosen, head, precision)
  const flat = graph.node("Reshape", [logits, graph.ints([-1, vocabulary])])
  graph.output("logits", flat, "float", ["N", vocabulary])
}
