import { isOn } from "../architectures/folder-json.ts"
import type { Value } from "../onnx/graph-builder.ts"
import { countIn, countOr, type Metadata, numberOr, textOr } from "../weights/gguf-metadata.ts"
import { decodeRow, matrixOf } from "../weights/matrix.ts"
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
  plusBias,
  prefixOf,
  product,
  projections,
  skipNorm,
  table,
  vector,
} from "./encoder-parts.ts"
import { pools } from "./pooling.ts"

interface BertConfig extends EncoderConfig {
  /** Rows of the table of positions. */
  readonly positions: number
  /** Position of the first token: RoBERTa counts from behind the padding token's id. */
  readonly firstPosition: number
  /** Rows of the table of segments (token types). */
  readonly segments: number
  readonly activation: Activation
}

const readConfig = (json: Metadata, firstPosition: number): BertConfig => {
  const type = textOr(json, "position_embedding_type", "absolute")
  if (type !== "absolute")
    throw new Unsupported(`'position_embedding_type' is '${type}'; this backend runs 'absolute'`)
  if (isOn(json, "is_decoder", false))
    throw new Unsupported("'is_decoder' is true; this backend runs tokens that see the whole text")
  const positions = countIn(json, "max_position_embeddings", 2 ** 20)
  if (positions <= firstPosition)
    throw new Damaged(`${positions} positions, of which the first ${firstPosition} are unused`)
  return {
    ...encoderSizes(json),
    positions,
    firstPosition,
    maxTokens: positions - firstPosition,
    segments: countOr(json, "type_vocab_size", 1024, 2),
    normEpsilon: numberOr(json, "layer_norm_eps", 1e-12),
    activation: activationNamed(textOr(json, "hidden_act", "gelu")),
  }
}

const norms = ({ width, normEpsilon }: EncoderConfig) => ({ width, epsilon: normEpsilon })

/**
 * Texts belong to the first segment, so its embedding is a constant; only pairs look theirs up.
 */
const segmentsOf = (
  building: EncoderBuilding,
  prefix: string,
  config: BertConfig,
  batch: EncoderBatch,
  isPair: boolean,
): Value => {
  const { graph, file } = building
  const { width, segments } = config
  const name = `${prefix}embeddings.token_type_embeddings.weight`
  if (isPair && segments > 1)
    return graph.node("Gather", [table(building, name, segments, width), batch.segments()])
  const first = new Float32Array(width)
  decodeRow(matrixOf(file, name, { rows: segments, columns: width }), 0, first)
  return graph.floats([...first])
}

const embeddings = (
  building: EncoderBuilding,
  prefix: string,
  config: BertConfig,
  batch: EncoderBatch,
  isPair: boolean,
): Value => {
  const { graph } = building
  const { width, vocabulary, positions, firstPosition } = config
  const words = lookup(
    building,
    `${prefix}embeddings.word_embeddings.weight`,
    { rows: vocabulary, columns: width },
    batch.ids,
  )
  const places = firstPosition
    ? graph.node("Add", [batch.positions, graph.ints(firstPosition)])
    : batch.positions
  const position = graph.node("Gather", [
    table(building, `${prefix}embeddings.position_embeddings.weight`, positions, width),
    places,
  ])
  const segment = segmentsOf(building, prefix, config, batch, isPair)
  const sum = graph.node("Add", [graph.node("Add", [words, segment]), position])
  return layerNorm(building, `${prefix}embeddings.LayerNorm`, sum, norms(config))
}

const feedForward = (
  building: EncoderBuilding,
  prefix: string,
  { width, feedForward: rows, activation }: BertConfig,
  x: Value,
): Value => {
  const inner = product(building, prefix, x, { rows, columns: width })
  return activation === "gelu"
    ? building.graph.fused("BiasGelu", [inner, vector(building, `${prefix}.bias`, rows)])
    : activated(building, activation, plusBias(building, prefix, inner, rows))
}

const layer = (
  building: EncoderBuilding,
  prefix: string,
  config: BertConfig,
  x: Value,
  mask: Value,
): Value => {
  const { width, feedForward: inner } = config
  const names = ["query", "key", "value"].map((name) => `${prefix}.attention.self.${name}`)
  const attended = bidirectional(building, projections(building, names, x, width), config, mask)
  const outer = (name: string, added: Value, onto: Value, columns: number) => {
    const out = product(building, `${prefix}.${name}.dense`, added, { rows: width, columns })
    const bias = vector(building, `${prefix}.${name}.dense.bias`, width)
    return skipNorm(building, `${prefix}.${name}.LayerNorm`, [onto, out, bias], norms(config))
  }
  const between = outer("attention.output", attended, x, width)
  const hidden = feedForward(building, `${prefix}.intermediate.dense`, config, between)
  return outer("output", hidden, between, inner)
}

const statesOf =
  (config: BertConfig, prefixes: readonly string[], isPair: boolean): EncoderModel["states"] =>
  (building, batch) => {
    const probe = "embeddings.word_embeddings.weight"
    const prefix = prefixOf(building.file, probe, ["", ...prefixes])
    let x = embeddings(building, prefix, config, batch, isPair)
    for (let index = 0; index < config.layers; index++)
      x = layer(building, `${prefix}encoder.layer.${index}`, config, x, batch.mask)
    return x
  }

/** The state of the first token through a dense layer with tanh, and the classifier. */
const scoreOf =
  ({ width }: BertConfig, hidden: string, classifier: string): NonNullable<EncoderModel["score"]> =>
  (building, batch, states) => {
    const first = dense(building, hidden, pools.cls(building, batch, states), {
      rows: width,
      columns: width,
    })
    const tanh = activated(building, "tanh", first)
    return dense(building, classifier, tanh, { rows: 1, columns: width })
  }

/** BERT (Devlin et al., arXiv 1810.04805). */
export const bert = (json: Metadata, isClassifier: boolean): EncoderModel => {
  const config = readConfig(json, 0)
  return {
    config,
    states: statesOf(config, ["bert."], isClassifier),
    score: scoreOf(config, "bert.pooler.dense", "classifier"),
  }
}

/**
 * RoBERTa (Liu et al., arXiv 1907.11692) and XLM-R (Conneau et al., arXiv 1911.02116): BERT with
 * positions from behind the padding token's id.
 */
export const roberta = (json: Metadata, isClassifier: boolean): EncoderModel => {
  const padding = numberOr(json, "pad_token_id", 1)
  if (!Number.isInteger(padding) || padding < 0 || padding > 2 ** 20)
    throw new Damaged(`'pad_token_id' is ${padding}, which is no token`)
  const config = readConfig(json, padding + 1)
  return {
    config,
    states: statesOf(config, ["roberta."], isClassifier),
    score: scoreOf(config, "classifier.dense", "classifier.out_proj"),
  }
}
