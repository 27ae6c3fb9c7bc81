import { Effect } from "effect"
import { type ApiError, apiError } from "../../../core/errors.ts"
import type {
  EmbedEvent,
  EmbedRequest,
  ModelContext,
  ModelPlan,
  Task,
} from "../../../core/ports/model.ts"
import type { Clock } from "../../../core/services/clock.ts"
import type { ModelId } from "../../../core/services/ids.ts"
import type { Log } from "../../../core/services/log.ts"
import type { Workers } from "../../../core/services/workers.ts"
import { usageOf } from "../../../core/usage.ts"
import type { EmbedTexts, EmbedTextsRequest, TokenizedText } from "../chat-format/embed-texts.ts"
import type { EmbedTextsInput } from "../chat-format/embed-texts-job.ts"
import { grouped, oneAtATime } from "../chat-format/long-texts.ts"
import { inPool, timedTokenize } from "../chat-format/pool.ts"
import type { EmbedJobEvent } from "../encoding/embed-job.ts"
import type { StageTime } from "../worker/protocol.ts"
import type { EncoderPool } from "./encoder-pool.ts"
import { microBatched } from "./micro-batch.ts"

export interface EmbedTaskDeps {
  readonly id: ModelId
  /** Folder of the model's files. */
  readonly folder: string
  readonly encoderPool: EncoderPool
  readonly contextTokens: number
  readonly workers: Workers
  readonly clock: Clock
  readonly log: Log
}

const foreignToken = (index: number, at: number, id: number, vocabulary: number): ApiError =>
  apiError(
    "invalid_request_error",
    `The token id ${id} is not in this model's vocabulary of ${vocabulary}.`,
    { param: `input[${index}][${at}]` },
  )

/** Returns the texts of a request; fails for other modalities, and tokens of another model. */
const textsOf = (
  { items }: EmbedRequest,
  vocabulary: number,
): Effect.Effect<readonly (string | Int32Array)[], ApiError> =>
  Effect.forEach(items, (item, index): Effect.Effect<string | Int32Array, ApiError> => {
    if (item.type === "text") return Effect.succeed(item.text)
    if (item.type === "media")
      return Effect.fail(
        apiError(
          "unsupported_parameter",
          "This model embeds texts only, not images or other media.",
          { param: `input[${index}]` },
        ),
      )
    const at = item.ids.findIndex((id) => id >= vocabulary)
    return at < 0
      ? Effect.succeed(item.ids)
      : Effect.fail(foreignToken(index, at, item.ids[at]!, vocabulary))
  })

/** Translates engine events to embed events; meters each text when it is embedded. */
const translator = (id: ModelId, context: ModelContext, texts: readonly TokenizedText[]) => {
  let inputTokens = 0
  return (event: EmbedJobEvent | StageTime): readonly EmbedEvent[] | undefined => {
    if (event.type === "time") {
      context.time(event.stage, event.durationMs)
      return undefined
    }
    const { ids, truncated } = texts[event.index]!
    inputTokens += ids.length
    context.meter(id, usageOf({ inputTokens }))
    return [{ index: event.index, vector: event.vector, truncated }]
  }
}

// a space between them, so that no token spans instruction and text
const separated = (instruction: string): string =>
  /\s$/.test(instruction) ? instruction : `${instruction} `

const charactersOf = ({ texts, instruction }: EmbedTextsRequest): number =>
  texts.reduce((sum, text) => sum + text.length, instruction.length)
/** Characters of requests that are tokenized in one job, which takes some milliseconds. */
const charactersAtOnce = 8_192

const lengthOf = (text: string | Int32Array): number => text.length

/** Many texts are tokenized in several jobs: in one they would hold up others. */
const inPieces = (
  input: EmbedTextsRequest,
  tokenize: (input: EmbedTextsRequest) => Effect.Effect<EmbedTexts, ApiError>,
): Effect.Effect<EmbedTexts, ApiError> => {
  const groups = grouped(input.texts, lengthOf)
  if (groups.length === 1) return tokenize(input)
  return Effect.gen(function* () {
    const texts: TokenizedText[] = []
    for (const group of groups) {
      const found = yield* oneAtATime(tokenize({ ...input, texts: group }))
      if ("tooLong" in found)
        return { tooLong: { ...found.tooLong, index: texts.length + found.tooLong.index } }
      if ("instructionTooLong" in found) return found
      texts.push(...found.texts)
    }
    return { texts }
  })
}

/** The embed task of a pool of encoder engines. */
export const makeEmbedTask = (deps: EmbedTaskDeps): Task<EmbedRequest, EmbedEvent> => {
  const { id, folder, encoderPool, contextTokens, workers, clock, log } = deps
  const tokenize = microBatched<EmbedTextsRequest, EmbedTexts, ApiError>({
    runAll: (requests) =>
      inPool<EmbedTextsInput, readonly EmbedTexts[]>(workers, log, "embed-texts-job", {
        folder,
        requests,
      }),
    sizeOf: charactersOf,
    maxSize: charactersAtOnce,
  })
  const tokenized = Effect.fnUntraced(function* (request: EmbedRequest, context: ModelContext) {
    const texts = yield* textsOf(request, encoderPool.info.vocabulary)
    const input = {
      texts,
      truncate: request.truncate,
      instruction: request.instruction ? separated(request.instruction) : "",
      maxTokens: contextTokens,
    }
    const result = yield* timedTokenize(clock, context, inPieces(input, tokenize))
    if ("texts" in result) return result.texts
    if ("instructionTooLong" in result)
      return yield* apiError(
        "invalid_request_error",
        `The instruction alone has ${result.instructionTooLong} tokens; the model takes ${contextTokens} with the text.`,
        {
          param: "instruction",
        },
      )
    const { index, tokens } = result.tooLong
    return yield* apiError(
      "text_too_long",
      `The text has ${tokens} tokens, the model takes ${contextTokens}, and truncate is NONE.`,
      { param: `input[${index}]` },
    )
  })
  const plan = Effect.fnUntraced(function* (request: EmbedRequest, context: ModelContext) {
    yield* encoderPool.availableFor({
      priority: context.priority,
      waitMs: Number.POSITIVE_INFINITY,
    })
    const texts = yield* tokenized(request, context)
    const run = encoderPool.run(
      texts.map((text) => text.ids),
      {
        account: context.tenant.account,
        priority: context.priority,
        waitMs: Number.POSITIVE_INFINITY,
        timeoutMs: () => context.deadlineMs - clock.nowMs(),
        translate: translator(id, context, texts),
      },
    )
    const planned: ModelPlan<EmbedEvent> = {
      bound: usageOf({ inputTokens: texts.reduce((sum, text) => sum + text.ids.length, 0) }),
      run,
    }
    return planned
  })
  return { plan }
}
