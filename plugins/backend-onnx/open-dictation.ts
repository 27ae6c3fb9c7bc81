import { statSync } from "node:fs"
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import type { ApiError } from "../../core/errors.ts"
import type { ChatEvent, ChatRequest, OpenRequest, Task } from "../../core/ports/model.ts"
import type { EngineOf, OnnxDeps } from "./engines.ts"
import { isHearing } from "./hearing/hearing-config.ts"
import type {
  HearingInfo,
  TranscribeJobEvent,
  TranscribeJobRequest,
} from "./hearing/transcribe-job.ts"
import { adapterRoles } from "./open-chat-images.ts"
import { failed, optionsOf } from "./opening.ts"
import { entryOptions } from "./options.ts"
import { dictatedChat } from "./tasks/dictated-chat.ts"
import { weightFilesIn } from "./weights/safetensors-folder.ts"

/** Small models are kept in 32 bits, of which 8 would save little. */
const smallBytes = 64 * 2 ** 20

const precisionFor = (folder: string): "fp32" | "int8" => {
  const bytes = weightFilesIn(folder).map((name) => statSync(join(folder, name)).size)
  return bytes.reduce((sum, size) => sum + size, 0) < smallBytes ? "fp32" : "int8"
}

type Files = Pick<OpenRequest, "modalities" | "adapters">

/** Where the speech model of a chat entry is; undefined: it has none, or takes no sounds. */
export const dictationPath = ({ modalities, adapters }: Files): string | undefined =>
  modalities && !modalities.includes("audio") ? undefined : adapterRoles(adapters).hearing

/** Opens the speech model of a chat entry; returns the task that takes sounds by it. */
export const openDictation = (
  deps: OnnxDeps,
  engineOf: EngineOf,
  request: OpenRequest,
  task: Task<ChatRequest, ChatEvent>,
): Effect.Effect<Task<ChatRequest, ChatEvent>, ApiError, Scope.Scope> =>
  Effect.gen(function* () {
    const path = dictationPath(request)
    if (path === undefined) return task
    if (!isHearing(path)) return yield* failed(`${path}: it is no folder with a Whisper model`)
    const precision = yield* Effect.try({
      try: () => precisionFor(path),
      catch: (cause) => failed((cause as Error).message),
    })
    const { slots, queueWaitMs } = yield* optionsOf(entryOptions.transcribe, {
      ...request,
      options: {},
    })
    const { engine } = yield* engineOf<TranscribeJobRequest, TranscribeJobEvent, HearingInfo>(
      { kind: "hearing", precision, slots },
      { ...request, path, adapters: [] },
    )
    return dictatedChat(task, { engine, queueWaitMs, ...deps.services() })
  })
