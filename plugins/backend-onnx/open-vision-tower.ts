import { Effect, type Scope } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { OpenRequest } from "../../core/ports/model.ts"
import type { EmbedJobEvent, EncoderInfo } from "./encoding/embed-job.ts"
import { mapVersion } from "./encoding/stacked-rotations.ts"
import type { EngineOf } from "./engines.ts"
import type { VisionEngine } from "./tasks/embed-task.ts"
import { hasVisionTower } from "./vision/vision-config.ts"
import type { VisionInfo, VisionJobRequest } from "./vision/vision-job.ts"
import type { EngineSpec } from "./worker/protocol.ts"

const failed = (message: string) => Effect.fail(apiError("backend_error", message))

/** The folder of the tower: the model's own, or its adapter's; fails where there are several. */
const towerFolder = (request: OpenRequest): Effect.Effect<string | undefined, ApiError> => {
  const folders = [
    ...(hasVisionTower(request.path) ? [request.path] : []),
    ...(request.adapters ?? []).map(({ path }) => path),
  ]
  return folders.length > 1
    ? failed(
        `The model '${request.id}' has ${folders.length} vision towers, its own and its adapters; an embedding model takes one.`,
      )
    : Effect.succeed(folders[0])
}

/**
 * Opens the tower by which a text encoder's entry takes images, if it has one: in its own folder,
 * or its adapter. The tower's vectors must be of the encoder's own space.
 */
export const openVisionTower = (
  engineOf: EngineOf,
  request: OpenRequest,
  precision: EngineSpec["precision"],
  text: EncoderInfo,
): Effect.Effect<VisionEngine | undefined, ApiError, Scope.Scope> =>
  Effect.gen(function* () {
    const folder = yield* towerFolder(request)
    if (folder === undefined) return undefined
    const matryoshka = text.map === mapVersion(true)
    const { engine, path } = yield* engineOf<VisionJobRequest, EmbedJobEvent, VisionInfo>(
      { kind: "vision", precision, encoder: { matryoshka } },
      { ...request, path: folder, adapters: [] },
    )
    const { width } = engine.info
    if (width !== text.width)
      return yield* failed(
        `${path}: its vectors have ${width} numbers, those of the text encoder '${text.name}' ${text.width}: they are of different spaces`,
      )
    return engine
  })
