import { Effect, type Scope } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { OpenRequest } from "../../core/ports/model.ts"
import type { EmbedJobEvent, EncoderInfo } from "./encoding/embed-job.ts"
import { mapVersion } from "./encoding/stacked-rotations.ts"
import type { EngineOf } from "./engines.ts"
import type { VisionEngine } from "./tasks/embed-task.ts"
import type { VisionInfo, VisionJobRequest } from "./vision/vision-job.ts"

const failed = (message: string) => Effect.fail(apiError("backend_error", message))

/**
 * Opens the tower by which a text encoder's entry takes images, if it has one: its adapter. Its
 * vectors must be of the encoder's own space.
 */
export const openVisionTower = (
  engineOf: EngineOf,
  request: OpenRequest,
  text: EncoderInfo,
): Effect.Effect<VisionEngine | undefined, ApiError, Scope.Scope> =>
  Effect.gen(function* () {
    const [adapter, ...more] = request.adapters ?? []
    if (adapter === undefined) return undefined
    if (more.length > 0)
      return yield* failed(
        `The model '${request.id}' has ${more.length + 1} adapters; an embedding model takes one, with a vision tower.`,
      )
    const matryoshka = text.map === mapVersion(true)
    const { engine, path } = yield* engineOf<VisionJobRequest, EmbedJobEvent, VisionInfo>(
      { kind: "vision", precision: "fp32", encoder: { matryoshka } },
      { ...request, path: adapter.path, adapters: [] },
    )
    const { width } = engine.info
    if (width !== text.width)
      return yield* failed(
        `${path}: its vectors have ${width} numbers, those of the text encoder '${text.name}' ${text.width}: they are of different spaces`,
      )
    return engine
  })
