import { modelNameIn } from "../architectures/folder-json.ts"
import type { GraphBuilder, Value } from "../onnx/graph-builder.ts"
import type { Precision } from "../onnx/linear.ts"
import { countIn, type Metadata, textIn } from "../weights/gguf-metadata.ts"
import { Damaged } from "../weights/model-file-error.ts"
import type { TensorSource } from "../weights/tensor-file.ts"

/** The sizes that every encoder has; plain data, as a graph's digest depends on it. */
export interface EncoderConfig {
  /** `model_type` of config.json. */
  readonly family: string
  readonly layers: number
  /** Width of a token's state (hidden size). */
  readonly width: number
  readonly heads: number
  readonly feedForward: number
  readonly vocabulary: number
  readonly normEpsilon: number
  /** The maximum number of tokens of a text, special tokens included. */
  readonly maxTokens: number
  /** The model's own name, such as `all-MiniLM-L6-v2`; its family where the folder has none. */
  readonly name: string
}

/** What an encoder's graph is built of. */
export interface EncoderBuilding {
  readonly graph: GraphBuilder
  readonly file: TensorSource
  readonly precision: Precision
  /** Adds what the LoRA of a run makes of the input `x` of the linear layer `name`. */
  readonly adapted?: (
    name: string,
    x: Value,
    product: Value,
    sizes: { readonly rows: number; readonly columns: number },
  ) => Value
}

/** What all parts of an encoder's graph read of a batch, padded at the end. */
export interface EncoderBatch {
  /** `[B,S]` int64. */
  readonly ids: Value
  /** `[B]` int64. */
  readonly lengths: Value
  /** `[S]` int64, from 0. */
  readonly positions: Value
  /** 1 for real tokens and 0 for padding, `[B,S]`. */
  readonly real: Value
  /** Added to the scores of attention, `[B,1,1,S]`. */
  readonly mask: Value
  /** Segment of each token: 0, or 1 from the second text of a pair on, `[B,S]` int64. */
  segments(): Value
}

/**
 * An encoder as its family reads it from config.json. A family is a module with such a function,
 * and a line in families.ts.
 */
export interface EncoderModel {
  readonly config: EncoderConfig
  /** Tokens that are read of every text, however short, where the family reads padding. */
  readonly readsTokens?: number
  /** Builds the states of all tokens, `[B,S,width]`. */
  states(building: EncoderBuilding, batch: EncoderBatch): Value
  /** Builds the logits of a sequence classifier of one label, `[B,1]`. */
  score?(building: EncoderBuilding, batch: EncoderBatch, states: Value): Value
  /**
   * Pooling of its own, in place of that of the folder's files: `[B, width]`, of the family's
   * output width.
   */
  readonly pooled?: {
    readonly width: number
    build(building: EncoderBuilding, batch: EncoderBatch, states: Value): Value
  }
}

/**
 * Reads config.json, and where it says too little other files of the folder; a classifier is given
 * pairs, so it needs the second segment.
 */
export type EncoderFamily = (
  config: Metadata,
  isClassifier: boolean,
  folder: string,
) => EncoderModel

/** Returns the sizes that the encoders of a config.json share; throws `Damaged`. */
export const encoderSizes = (json: Metadata) => {
  const width = countIn(json, "hidden_size", 65_536)
  const heads = countIn(json, "num_attention_heads", 1024)
  if (width % heads) throw new Damaged(`${heads} heads don't fit a width of ${width}`)
  return {
    family: textIn(json, "model_type"),
    layers: countIn(json, "num_hidden_layers", 512),
    width,
    heads,
    feedForward: countIn(json, "intermediate_size", 1_048_576),
    vocabulary: countIn(json, "vocab_size", 2 ** 24),
    name: modelNameIn(json),
  }
}
