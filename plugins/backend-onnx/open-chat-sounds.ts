import { existsSync } from "node:fs"
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import type { ApiError } from "../../core/errors.ts"
import type { OpenRequest } from "../../core/ports/model.ts"
import { configFile } from "./architectures/folder-config.ts"
import type { EmbedJobEvent } from "./encoding/embed-job.ts"
import type { EngineOf, OnnxDeps } from "./engines.ts"
import { isListening } from "./hearing/listening-config.ts"
import type { ListeningInfo, ListenJobRequest } from "./hearing/open-listening-engine.ts"
import type { ChatMedia } from "./tasks/chat-media.ts"
import { makeChatSounds } from "./tasks/chat-sounds.ts"
import { hasWeights } from "./weights/safetensors-folder.ts"
import type { EngineSpec } from "./worker/protocol.ts"

/** Memory of encoded sounds of an entry: five of 30 s, 750 tokens of 4,096 numbers each. */
const cacheBytes = 64 * 2 ** 20

/** Whether the chat model of an entry hears. */
export const hearsSounds = ({
  path,
  modalities,
}: Pick<OpenRequest, "path" | "modalities">): boolean =>
  (modalities === undefined || modalities.includes("audio")) &&
  existsSync(join(path, configFile)) &&
  hasWeights(path) &&
  isListening(path)

/** Opens what a chat model hears by, in an engine of its own beside the decoder. */
export const openChatSounds = (
  deps: OnnxDeps,
  engineOf: EngineOf,
  request: OpenRequest,
  model: { readonly contextTokens: number; readonly precision: EngineSpec["precision"] },
): Effect.Effect<ChatMedia | undefined, ApiError, Scope.Scope> =>
  Effect.gen(function* () {
    if (!hearsSounds(request)) return undefined
    const precision = model.precision === "fp32" ? "fp32" : "int8"
    const { engine } = yield* engineOf<ListenJobRequest, EmbedJobEvent, ListeningInfo>(
      { kind: "listening", precision },
      { ...request, adapters: [] },
    )
    const { contextTokens } = model
    return makeChatSounds({ engine, cacheBytes, contextTokens, ...deps.services() })
  })
