import { Effect, type Scope } from "effect"
import type { ApiError } from "../../core/errors.ts"
import type { OpenRequest } from "../../core/ports/model.ts"
import type { EmbedJobEvent, EmbedJobRequest, EncoderInfo } from "./encoding/embed-job.ts"
import { folderEncoder } from "./encoding/families.ts"
import type { EngineOf } from "./engines.ts"
import { type EncoderPool, makeEncoderPool } from "./tasks/encoder-pool.ts"
import type { EncoderOptions, EngineSpec } from "./worker/protocol.ts"

export interface OpenedEncoderPool {
  readonly encoderPool: EncoderPool
  /** Folder of the model with symbolic links resolved. */
  readonly path: string
}

/** Weights of the layers up to which engines side by side read more than one with all threads. */
const smallWeights = 40_000_000

/**
 * A pass of a large model keeps all threads busy by itself, and the weights of another engine would
 * cost memory for nothing.
 */
const defaultInstances = (path: string, encoder: EncoderOptions = {}): number => {
  try {
    const { layers, width, feedForward } = folderEncoder(path, encoder).config
    return layers * width * (4 * width + 2 * feedForward) <= smallWeights ? 2 : 1
  } catch {
    // the thread finds the same and reports it
    return 1
  }
}

export interface EncoderPoolOptions {
  readonly precision: EngineSpec["precision"]
  /** How many engines share the threads; by default 2 of a small model. */
  readonly instances: number | undefined
  /** Threads of a model. */
  readonly threads: number
  readonly encoder?: EncoderOptions
  /** It has a queue for all engines, and the weights are in its memory once. */
  readonly isOnDevice: boolean
}

/**
 * Opens several engines of an encoder, which share the threads of a model, and one with all threads
 * for a text that comes alone.
 */
export const openEncoderPool = (
  engineOf: EngineOf,
  request: OpenRequest,
  { precision, instances, threads, encoder, isOnDevice }: EncoderPoolOptions,
): Effect.Effect<OpenedEncoderPool, ApiError, Scope.Scope> =>
  Effect.gen(function* () {
    const wanted = instances ?? defaultInstances(request.path, encoder)
    const of = isOnDevice ? 1 : Math.min(wanted, threads)
    const openInstance = (instance: { readonly index: number; readonly of: number }) =>
      engineOf<EmbedJobRequest, EmbedJobEvent, EncoderInfo>(
        { kind: "encoder", precision, ...(encoder && { encoder }) },
        request,
        instance,
      )
    // the first builds the graph, which the others load
    const { engine: first, path } = yield* openInstance({ index: 0, of: 1 })
    if (of === 1) return { encoderPool: makeEncoderPool([first]), path }
    const shared = yield* Effect.forEach(
      Array.from({ length: of }, (_, index) => ({ index, of })),
      openInstance,
      { concurrency: "unbounded" },
    )
    const engines = shared.map(({ engine }) => engine)
    return { encoderPool: makeEncoderPool(engines, first), path }
  })
