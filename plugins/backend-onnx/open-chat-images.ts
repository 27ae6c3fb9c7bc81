import { existsSync } from "node:fs"
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import type { ApiError } from "../../core/errors.ts"
import type { OpenRequest } from "../../core/ports/model.ts"
import { adapterWeightsFile } from "./architectures/adapter-file.ts"
import { configFile } from "./architectures/folder-config.ts"
import { readModelHeader } from "./architectures/model-source.ts"
import type { EmbedJobEvent } from "./encoding/embed-job.ts"
import type { EngineOf, OnnxDeps } from "./engines.ts"
import { failed } from "./opening.ts"
import { makeChatImages } from "./tasks/chat-images.ts"
import type { ChatMedia } from "./tasks/chat-media.ts"
import type { SightInfo } from "./vision/open-sight-engine.ts"
import { type SightConfig, sightConfig } from "./vision/sight-config.ts"
import type { VisionJobRequest } from "./vision/vision-job.ts"
import { hasWeights } from "./weights/safetensors-folder.ts"
import type { EngineSpec } from "./worker/protocol.ts"

/** Memory of encoded images of an entry: 400 images of 64 tokens of 640 numbers. */
const cacheBytes = 64 * 2 ** 20

/** Adapters of a chat entry that are no LoRAs which requests choose, but parts of the model. */
const visionPart = "vision"
const hearingPart = "hearing"

type Files = Pick<OpenRequest, "path" | "modalities" | "adapters">

/** What the adapters of a chat entry are. */
export const adapterRoles = (
  adapters: OpenRequest["adapters"] = [],
): {
  /** Where the tower is. */
  readonly vision: string | undefined
  /** Where the speech model is that writes down sounds. */
  readonly hearing: string | undefined
  /** The LoRAs that the decoder opens. */
  readonly loras: NonNullable<OpenRequest["adapters"]>
  /** The names of those that requests choose. */
  readonly chosen: readonly string[]
  /** The LoRA that stands beside the tower, which every request with images has. */
  readonly own: { readonly id: string; readonly strength: number } | undefined
} => {
  const part = (name: string) => adapters.find(({ id }) => id === name)
  const [tower, speech] = [part(visionPart), part(hearingPart)]
  const others = adapters.filter((adapter) => adapter !== tower && adapter !== speech)
  const isTuned = tower !== undefined && existsSync(join(tower.path, adapterWeightsFile))
  return {
    vision: tower?.path,
    hearing: speech?.path,
    loras: isTuned ? [tower, ...others] : others,
    chosen: others.map(({ id }) => id),
    own: isTuned ? { id: visionPart, strength: 1 } : undefined,
  }
}

const hasTower = (path: string): boolean =>
  existsSync(join(path, configFile)) && hasWeights(path) && sightConfig(path) !== undefined

/** Where the tower of an entry is: in a file or folder of its own, or in that of its decoder. */
const towerPath = ({ path, modalities, adapters }: Files): string | undefined => {
  if (modalities && !modalities.includes("image")) return undefined
  return adapterRoles(adapters).vision ?? (hasTower(path) ? path : undefined)
}

/**
 * How the chat model of an entry sees; undefined where it has no tower, or the entry takes texts
 * only. Throws `ModelFileError`.
 */
export const sightOf = (files: Files): SightConfig | undefined => {
  const path = towerPath(files)
  if (path === undefined) return undefined
  const config = sightConfig(path)
  if (!config) throw new Error(`${path}: it has no tower that reads images`)
  return config
}

/** Fails where the decoder can't read what the tower makes. */
const checkWidth = (request: Files, tower: string, { width }: SightInfo) =>
  Effect.try({
    try: () => {
      const decoder = readModelHeader(request.path).config.width
      if (decoder !== width)
        throw new Error(
          `${tower}: its projector makes vectors of ${width} numbers, and the decoder ${request.path} reads ${decoder}`,
        )
    },
    catch: (cause) => failed((cause as Error).message),
  })

/** Opens what a chat model sees images by, in an engine of its own beside the decoder. */
export const openChatImages = (
  deps: OnnxDeps,
  engineOf: EngineOf,
  request: OpenRequest,
  model: { readonly contextTokens: number; readonly precision: EngineSpec["precision"] },
): Effect.Effect<ChatMedia | undefined, ApiError, Scope.Scope> =>
  Effect.gen(function* () {
    const path = yield* Effect.try({
      try: () => towerPath(request),
      catch: (cause) => failed((cause as Error).message),
    })
    if (path === undefined) return undefined
    const precision = model.precision === "fp32" ? "fp32" : "int8"
    const { engine } = yield* engineOf<VisionJobRequest, EmbedJobEvent, SightInfo>(
      { kind: "sight", precision },
      { ...request, path, adapters: [] },
    )
    yield* checkWidth(request, path, engine.info)
    return makeChatImages({
      engine,
      cacheBytes,
      // the files of a tower that stands alone know another vocabulary
      imageToken: path === request.path ? engine.info.imageToken : undefined,
      contextTokens: model.contextTokens,
      ...deps.services(),
    })
  })
