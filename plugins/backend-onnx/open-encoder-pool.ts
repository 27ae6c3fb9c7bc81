import { Effect, type Scope } from "effect"
import type { ApiError } from "../../core/errors.ts"
import type { OpenRequest } from "../../core/ports/model.ts"
import type { EmbedJobEvent, EmbedJobRequest, EncoderInfo } from "./encoding/embed-job.ts"
import type { EngineOf } from "./engines.ts"
import { type EncoderPool, makeEncoderPool } from "./tasks/encoder-pool.ts"
import type { EncoderOptions, EngineSpec } from "./worker/protocol.ts"

export interface OpenedEncoderPool {
  readonly encoderPool: EncoderPool
  /** Folder of the model with symbolic links resolved. */
  readonly path: string
}

/** Opens `instances` engines of an encoder, which share the threads of a model. */
export const openEncoderPool = (
  engineOf: EngineOf,
  request: OpenRequest,
  options: {
    readonly precision: EngineSpec["precision"]
    readonly instances: number
    readonly encoder?: EncoderOptions
  },
): Effect.Effect<OpenedEncoderPool, ApiError, Scope.Scope> =>
  Effect.gen(function* () {
    const { precision, instances: of, encoder } = options
    const openInstance = (index: number) =>
      engineOf<EmbedJobRequest, EmbedJobEvent, EncoderInfo>(
        { kind: "encoder", precision, ...(encoder && { encoder }) },
        request,
        { index, of },
      )
    // the first builds the graph, which the others load
    const { engine: first, path } = yield* openInstance(0)
    const others = yield* Effect.forEach(
      Array.from({ length: of - 1 }, (_, i) => i + 1),
      openInstance,
      { concurrency: "unbounded" },
    )
    return { encoderPool: makeEncoderPool([first, ...others.map(({ engine }) => engine)]), path }
  })
