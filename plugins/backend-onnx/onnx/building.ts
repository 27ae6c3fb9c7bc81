import type { DecoderConfig } from "../architectures/decoder-config.ts"
import type { DecoderWeights } from "../architectures/decoder-weights.ts"
import type { GraphBuilder } from "./graph-builder.ts"
import type { Precision } from "./linear.ts"

/** What a decoder's graph is built of. */
export interface Building {
  readonly graph: GraphBuilder
  readonly config: DecoderConfig
  readonly weights: DecoderWeights
  readonly precision: Precision
  /** Whether the matrices of the layers take adapters as inputs. */
  readonly adapters?: boolean
  /** Keys and values stay floats, where the native kernels would keep them as halves. */
  readonly floatKv?: boolean
  /** The graph has only so many rows of the head, for a model that is not there to write. */
  readonly headRows?: number
}
