import { objectAt } from "../architectures/folder-json.ts"
import { type Rotary, rotationsOf, scaledBy } from "../architectures/rotary.ts"
import type { Value } from "../onnx/graph-builder.ts"
import { type RotaryTables, rotaryTables } from "../onnx/rotary-tables.ts"
import {
  countIn,
  countOr,
  type Metadata,
  numberOr,
  present,
  textOr,
  textsIn,
} from "../weights/gguf-metadata.ts"
import { Damaged, Unsupported } from "../weights/model-file-error.ts"
import {
  type EncoderBatch,
  type EncoderBuilding,
  type EncoderConfig,
  type EncoderModel,
  encoderSizes,
} from "./encoder-model.ts"
import {
  type Activation,
  activated,
  activationNamed,
  bidirectional,
  dense,
  layerNorm,
  lookup,
  prefixOf,
} from "./encoder-parts.ts"
import { pools } from "./pooling.ts"

interface ModernBertConfig extends EncoderConfig {
  readonly activation: Activation
  /** Whether each layer sees only the tokens around. */
  readonly isLocal: readonly boolean[]
  /** How many tokens on each side a local layer sees. */
  readonly reach: number
  readonly rotary: { readonly global: Rotary; readonly local: Rotary }
  readonly deniedBiases: readonly BiasSwitch[]
  readonly classifier: { readonly pooling: "cls" | "mean"; readonly activation: Activation }
}

const kinds = { full_attention: false, sliding_attention: true } as const

/** Layers are named one by one; older files say that every n-th one is global. */
const localLayers = (json: Metadata, layers: number): readonly boolean[] => {
  if (!present(json, "layer_types")) {
    const every = countOr(json, "global_attn_every_n_layers", 512, 3)
    return Array.from({ length: layers }, (_, index) => index % every !== 0)
  }
  const types = textsIn(json, "layer_types")
  if (types.length !== layers) throw new Damaged(`'layer_types' names ${types.length} layers`)
  return types.map((type) => {
    if (!Object.hasOwn(kinds, type)) throw new Unsupported(`a layer of it is '${type}'`)
    return kinds[type as keyof typeof kinds]
  })
}

/**
 * Rotation of the layers of a kind; `key` names the base in older files, whose scaling is that of
 * both kinds.
 */
const rotaryOf = (
  json: Metadata,
  kind: keyof typeof kinds,
  key: string,
  base: number,
  headSize: number,
): Rotary => {
  const all = objectAt(json, "rope_parameters")
  const own = new Map([...objectAt(all, kind), ...objectAt(json, "rope_scaling")])
  const theta = numberOr(own, "rope_theta", numberOr(json, key, base))
  return { rotations: scaledBy(rotationsOf(theta, headSize), own) }
}

/** Which tensors exist only where a switch of config.json is on. */
const biases = {
  attention_bias: /\.attn\.W(?:qkv|o)\.bias$/,
  mlp_bias: /\.mlp\.W[io]\.bias$/,
  norm_bias: /norm\.bias$/,
  classifier_bias: /(?:^|\.)head\.dense\.bias$/,
} as const
type BiasSwitch = keyof typeof biases

/** An absent switch denies nothing: what the file has is read. */
const deniedBiases = (json: Metadata): readonly BiasSwitch[] =>
  (Object.keys(biases) as BiasSwitch[]).filter((key) => (json.get(key) as unknown) === false)

/** Refuses biases that transformers would leave out, of the layers or of a classifier's head. */
const checkBiases = (
  { file }: EncoderBuilding,
  denied: readonly BiasSwitch[],
  part: "layers" | "head",
): void => {
  for (const key of denied)
    for (const name of file.names())
      if (biases[key].test(name) && name.startsWith("head.") === (part === "head"))
        throw new Unsupported(`it has the tensor '${name}', and '${key}' is false`)
}

const classifierPooling = (json: Metadata): "cls" | "mean" => {
  const found = textOr(json, "classifier_pooling", "cls")
  if (found !== "cls" && found !== "mean")
    throw new Unsupported(`'classifier_pooling' is '${found}'; this backend runs cls and mean`)
  return found
}

const readConfig = (json: Metadata): ModernBertConfig => {
  const sizes = encoderSizes(json)
  const headSize = sizes.width / sizes.heads
  if (headSize % 2) throw new Damaged(`a head size of ${headSize} can't be rotated`)
  return {
    ...sizes,
    maxTokens: countIn(json, "max_position_embeddings", 131_072),
    normEpsilon: numberOr(json, "norm_eps", 1e-5),
    activation: activationNamed(textOr(json, "hidden_activation", "gelu")),
    isLocal: localLayers(json, sizes.layers),
    reach: Math.floor(countOr(json, "local_attention", 2 ** 20, 128) / 2),
    rotary: {
      global: rotaryOf(json, "full_attention", "global_rope_theta", 160_000, headSize),
      local: rotaryOf(json, "sliding_attention", "local_rope_theta", 10_000, headSize),
    },
    deniedBiases: deniedBiases(json),
    classifier: {
      pooling: classifierPooling(json),
      activation: activationNamed(textOr(json, "classifier_activation", "gelu")),
    },
  }
}

/** What hides padding and, for local layers, all that is further away than `reach`: `[B,1,S,S]`. */
const localMask = ({ graph }: EncoderBuilding, batch: EncoderBatch, reach: number): Value => {
  const column = graph.node("Unsqueeze", [batch.positions, graph.ints([1])])
  const distance = graph.node("Abs", [graph.node("Sub", [column, batch.positions])])
  const far = graph.node("Greater", [distance, graph.ints(reach)])
  const hidden = graph.node("Where", [far, graph.floats(-1e9), graph.floats(0)])
  return graph.node("Add", [batch.mask, hidden])
}

interface Frame {
  readonly mask: Value
  readonly rotary: RotaryTables
}

const attend = (
  building: EncoderBuilding,
  prefix: string,
  { width, heads }: ModernBertConfig,
  x: Value,
  { mask, rotary }: Frame,
): Value => {
  const { graph } = building
  const all = dense(building, `${prefix}.Wqkv`, x, { rows: 3 * width, columns: width })
  const names = ["q", "k", "v"].map((name) => graph.name(name))
  const [q, k, v] = graph.nodeWith("Split", [all], names, { attributes: { axis: -1 } })
  const rotate = (part: Value) =>
    graph.fused("RotaryEmbedding", [part, graph.ints([0]), rotary.cos, rotary.sin], {
      num_heads: heads,
      interleaved: 0,
    })
  const parts = [rotate(q!), rotate(k!), v!]
  const attended = bidirectional(building, parts, { width, heads }, mask)
  return dense(building, `${prefix}.Wo`, attended, { rows: width, columns: width })
}

/** GeGLU (Shazeer, arXiv 2002.05202): half of the products gate the other half. */
const feedForward = (
  building: EncoderBuilding,
  prefix: string,
  { width, feedForward: inner, activation }: ModernBertConfig,
  x: Value,
): Value => {
  const { graph } = building
  const both = dense(building, `${prefix}.Wi`, x, { rows: 2 * inner, columns: width })
  const names = [graph.name("up"), graph.name("gate")]
  const [up, gate] = graph.nodeWith("Split", [both], names, { attributes: { axis: -1 } })
  const gated = graph.node("Mul", [activated(building, activation, up!), gate!])
  return dense(building, `${prefix}.Wo`, gated, { rows: width, columns: inner })
}

const framesOf = (
  building: EncoderBuilding,
  config: ModernBertConfig,
  batch: EncoderBatch,
): readonly Frame[] => {
  const { isLocal, rotary, maxTokens, reach } = config
  const tables = rotaryTables(building.graph, {
    rotary: isLocal.map((local) => (local ? rotary.local : rotary.global)),
    contextTokens: maxTokens,
  })
  const local = isLocal.includes(true) ? localMask(building, batch, reach) : batch.mask
  return isLocal.map((isHere, index) => ({
    mask: isHere ? local : batch.mask,
    rotary: tables[index]!,
  }))
}

const statesOf =
  (config: ModernBertConfig): EncoderModel["states"] =>
  (building, batch) => {
    const { graph, file } = building
    const { width, vocabulary, layers, normEpsilon } = config
    checkBiases(building, config.deniedBiases, "layers")
    const prefix = prefixOf(file, "embeddings.tok_embeddings.weight", ["", "model."])
    const norm = (name: string, x: Value) =>
      layerNorm(building, `${prefix}${name}`, x, { width, epsilon: normEpsilon })
    const words = lookup(
      building,
      `${prefix}embeddings.tok_embeddings.weight`,
      { rows: vocabulary, columns: width },
      batch.ids,
    )
    const frames = framesOf(building, config, batch)
    let x = norm("embeddings.norm", words)
    for (let index = 0; index < layers; index++) {
      const name = `${prefix}layers.${index}`
      const before = index === 0 ? x : norm(`layers.${index}.attn_norm`, x)
      x = graph.node("Add", [x, attend(building, `${name}.attn`, config, before, frames[index]!)])
      const between = norm(`layers.${index}.mlp_norm`, x)
      x = graph.node("Add", [x, feedForward(building, `${name}.mlp`, config, between)])
    }
    return norm("final_norm", x)
  }

/**
 * ModernBERT (Warner et al., arXiv 2412.13663): layers with rotary positions that see everything or
 * only what is near, normalized before each part.
 */
export const modernbert = (json: Metadata): EncoderModel => {
  const config = readConfig(json)
  const { width, normEpsilon, classifier } = config
  return {
    config,
    states: statesOf(config),
    score: (building, batch, states) => {
      checkBiases(building, config.deniedBiases, "head")
      const pooled = pools[classifier.pooling](building, batch, states)
      const hidden = dense(building, "head.dense", pooled, { rows: width, columns: width })
      const active = activated(building, classifier.activation, hidden)
      const normed = layerNorm(building, "head.norm", active, { width, epsilon: normEpsilon })
      return dense(building, "classifier", normed, { rows: 1, columns: width })
    },
  }
}
