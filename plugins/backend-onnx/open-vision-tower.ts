import { Effect, type Scope } from "effect"
import type { ApiError } from "../../core/errors.ts"
import type { OpenRequest } from "../../core/ports/model.ts"
import type { EmbedJobEvent, EncoderInfo } from "./encoding/embed-job.ts"
import { mapVersion } from "./encoding/stacked-rotations.ts"
import type { EngineOf } from "./engines.ts"
import { failed } from "./opening.ts"
import type { VisionEngine } from "./tasks/embed-task.ts"
import { hasVisionTower, visionConfig } from "./vision/vision-config.ts"
import type { VisionInfo, VisionJobRequest } from "./vision/vision-job.ts"
import type { EngineSpec } from "./worker/protocol.ts"

/**
 * The folder of the tower by which an entry takes images: the model's own, or its adapter's.
 * Undefined: it has none, or takes texts only. Throws where there are several, or its vectors are
 * not in the space of the text encoder.
 */
export const towerFolder = (
  { id, path, adapters = [], modalities }: Omit<OpenRequest, "progress">,
  text: Pick<EncoderInfo, "name" | "width">,
): string | undefined => {
  if (modalities && !modalities.includes("image")) return undefined
  const folders = [...(hasVisionTower(path) ? [path] : []), ...adapters.map((own) => own.path)]
  const [folder] = folders
  if (folder === undefined) return undefined
  if (folders.length > 1)
    throw new Error(
      `The model '${id}' has ${folders.length} vision towers, its own and its adapters; an embedding model takes one.`,
    )
  const { width } = visionConfig(folder)
  if (width !== text.width)
    throw new Error(
      `${folder}: its vectors have ${width} numbers, those of the text encoder '${text.name}' ${text.width}: they are of different spaces`,
    )
  return folder
}

/** Opens the tower by which a text encoder's entry takes images, if it has one. */
export const openVisionTower = (
  engineOf: EngineOf,
  request: OpenRequest,
  precision: EngineSpec["precision"],
  text: EncoderInfo,
): Effect.Effect<VisionEngine | undefined, ApiError, Scope.Scope> =>
  Effect.gen(function* () {
    const folder = yield* Effect.try({
      try: () => towerFolder(request, text),
      catch: (cause) => failed((cause as Error).message),
    })
    if (folder === undefined) return undefined
    const matryoshka = text.map === mapVersion(true)
    const { engine } = yield* engineOf<VisionJobRequest, EmbedJobEvent, VisionInfo>(
      { kind: "vision", precision, encoder: { matryoshka } },
      { ...request, path: folder, adapters: [] },
    )
    return engine
  })
