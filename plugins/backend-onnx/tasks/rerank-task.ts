import { Effect } from "effect"
import { type ApiError, apiError } from "../../../core/errors.ts"
import type {
  ModelContext,
  ModelPlan,
  RerankEvent,
  RerankRequest,
  Task,
} from "../../../core/ports/model.ts"
import type { Clock } from "../../../core/services/clock.ts"
import type { ModelId } from "../../../core/services/ids.ts"
import type { Log } from "../../../core/services/log.ts"
import type { Workers } from "../../../core/services/workers.ts"
import { usageOf } from "../../../core/usage.ts"
import { grouped, oneAtATime } from "../chat-format/long-texts.ts"
import { inPool, timedTokenize } from "../chat-format/pool.ts"
import type { RerankPrompts } from "../chat-format/rerank-prompt.ts"
import type { RerankPromptInput } from "../chat-format/rerank-prompt-job.ts"
import type { DecoderEvent, DecoderInfo, DecoderRequest } from "../generation/decoder-jobs.ts"
import type { Engine } from "../worker/host.ts"
import type { StageTime } from "../worker/protocol.ts"

export interface RerankTaskDeps {
  readonly id: ModelId
  readonly engine: Engine<DecoderRequest, DecoderEvent, DecoderInfo>
  readonly contextTokens: number
  /** The instruction of requests that bring none. */
  readonly instruction: string
  readonly workers: Workers
  readonly clock: Clock
  readonly log: Log
}

/**
 * Translates engine events to rerank events; a request is one search unit, from its first computed
 * tokens on.
 */
const translator =
  (id: ModelId, context: ModelContext) =>
  (event: DecoderEvent | StageTime): readonly RerankEvent[] | undefined => {
    switch (event.type) {
      case "time":
        context.time(event.stage, event.durationMs)
        return undefined
      case "prefilled":
        context.meter(id, usageOf({ inputTokens: event.inputTokens, searchUnits: 1 }))
        return undefined
      case "score":
        return [{ index: event.index, score: event.score }]
      default:
        return undefined
    }
  }

/** Many documents are tokenized in several jobs: in one they would hold up others. */
const inPieces = (
  input: RerankPromptInput,
  tokenize: (input: RerankPromptInput) => Effect.Effect<RerankPrompts, ApiError>,
): Effect.Effect<RerankPrompts, ApiError> => {
  const groups = grouped(input.documents, (document) => document.length)
  if (groups.length === 1) return tokenize(input)
  return Effect.gen(function* () {
    const prompts: Int32Array[] = []
    for (const documents of groups) {
      const found = yield* oneAtATime(tokenize({ ...input, documents }))
      if (!("prompts" in found)) return found
      prompts.push(...found.prompts)
    }
    return { prompts }
  })
}

/**
 * The rerank task of a decoder engine: scores a document by how much likelier the model answers yes
 * than no.
 */
export const makeRerankTask = (deps: RerankTaskDeps): Task<RerankRequest, RerankEvent> => {
  const { id, engine, contextTokens, workers, clock, log } = deps
  const promptsOf = Effect.fnUntraced(function* (request: RerankRequest, context: ModelContext) {
    const { query, documents } = request
    const input: RerankPromptInput = {
      folder: engine.info.folder,
      query,
      documents,
      instruction: request.instruction ?? deps.instruction,
      contextTokens,
    }
    const result = yield* timedTokenize(
      clock,
      context,
      inPieces(input, (piece) =>
        inPool<RerankPromptInput, RerankPrompts>(workers, log, "rerank-prompt-job", piece),
      ),
    )
    if ("prompts" in result) return result.prompts
    if ("refused" in result)
      return yield* apiError(
        "invalid_request_error",
        `The model's template can't take this query: ${result.refused}`,
        { param: "query" },
      )
    const { queryTooLong } = result
    return yield* apiError(
      "context_length_exceeded",
      `The query with its instruction has ${queryTooLong} tokens or more; the model's window is ${contextTokens} tokens.`,
      {
        param: "query",
      },
    )
  })
  const plan = Effect.fnUntraced(function* (request: RerankRequest, context: ModelContext) {
    yield* engine.availableFor({ priority: context.priority, waitMs: Number.POSITIVE_INFINITY })
    const prompts = yield* promptsOf(request, context)
    const { yesTokens, noTokens } = engine.info
    const run = engine.run(
      { kind: "score", prompts, yesTokens, noTokens },
      {
        account: context.tenant.account,
        priority: context.priority,
        waitMs: Number.POSITIVE_INFINITY,
        timeoutMs: () => context.deadlineMs - clock.nowMs(),
        translate: translator(id, context),
      },
    )
    const inputTokens = prompts.reduce((sum, ids) => sum + ids.length, 0)
    const planned: ModelPlan<RerankEvent> = { bound: usageOf({ inputTokens, searchUnits: 1 }), run }
    return planned
  })
  return { plan }
}
