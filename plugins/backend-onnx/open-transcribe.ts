import { Effect } from "effect"
import type { LoadedModel } from "../../core/ports/model.ts"
import type {
  HearingInfo,
  TranscribeJobEvent,
  TranscribeJobRequest,
} from "./hearing/transcribe-job.ts"
import { type OpenEntry, optionsOf, shape } from "./opening.ts"
import { entryOptions } from "./options.ts"
import { makeTranscribeTask } from "./tasks/transcribe-task.ts"

export const hearingAbilities = { modalities: ["text", "audio"], capabilities: [] }

/** Opens a folder with a Whisper model. */
export const openTranscribe: OpenEntry = Effect.fnUntraced(function* (deps, engineOf, request) {
  const { precision, slots, queueWaitMs } = yield* optionsOf(entryOptions.transcribe, request)
  const { engine } = yield* engineOf<TranscribeJobRequest, TranscribeJobEvent, HearingInfo>(
    { kind: "hearing", precision, slots },
    request,
  )
  return {
    ...shape,
    ...hearingAbilities,
    task: makeTranscribeTask({ id: request.id, engine, queueWaitMs, ...deps.services() }),
    contextTokens: Math.min(request.contextTokens, engine.info.contextTokens),
    stats: () => ({ ...engine.stats(), reproducible: 1 }),
  } satisfies LoadedModel<"transcribe">
})
