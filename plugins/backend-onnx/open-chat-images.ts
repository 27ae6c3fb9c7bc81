import { existsSync } from "node:fs"
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import type { ApiError } from "../../core/errors.ts"
import type { OpenRequest } from "../../core/ports/model.ts"
import { configFile } from "./architectures/folder-config.ts"
import type { EmbedJobEvent } from "./encoding/embed-job.ts"
import type { EngineOf, OnnxDeps } from "./engines.ts"
import { failed } from "./opening.ts"
import { type ChatImages, makeChatImages } from "./tasks/chat-images.ts"
import type { SightInfo } from "./vision/open-sight-engine.ts"
import { type SightConfig, sightConfig } from "./vision/sight-config.ts"
import type { VisionJobRequest } from "./vision/vision-job.ts"
import { hasWeights } from "./weights/safetensors-folder.ts"
import type { EngineSpec } from "./worker/protocol.ts"

/** Memory of encoded images of an entry: 400 images of 64 tokens of 640 numbers. */
const cacheBytes = 64 * 2 ** 20

const hasConfig = (path: string): boolean => existsSync(join(path, configFile))

/**
 * How the chat model of an entry sees; undefined where it has no tower, or the entry takes texts
 * only. Throws `ModelFileError`.
 */
export const sightOf = ({
  path,
  modalities,
}: Pick<OpenRequest, "path" | "modalities">): SightConfig | undefined =>
  (modalities && !modalities.includes("image")) || !hasConfig(path) || !hasWeights(path)
    ? undefined
    : sightConfig(path)

/** Opens what a chat model sees images by, in an engine of its own beside the decoder. */
export const openChatImages = (
  deps: OnnxDeps,
  engineOf: EngineOf,
  request: OpenRequest,
  model: { readonly contextTokens: number; readonly precision: EngineSpec["precision"] },
): Effect.Effect<ChatImages | undefined, ApiError, Scope.Scope> =>
  Effect.gen(function* () {
    const sight = yield* Effect.try({
      try: () => sightOf(request),
      catch: (cause) => failed((cause as Error).message),
    })
    if (!sight) return undefined
    const precision = model.precision === "fp32" ? "fp32" : "int8"
    const { engine } = yield* engineOf<VisionJobRequest, EmbedJobEvent, SightInfo>(
      { kind: "sight", precision },
      { ...request, adapters: [] },
    )
    return makeChatImages({
      engine,
      cacheBytes,
      contextTokens: model.contextTokens,
      ...deps.services(),
    })
  })
