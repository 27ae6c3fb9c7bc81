import { Effect, type Stream } from "effect"
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
import { noUsage, sumUsage, usageOf } from "../../../core/usage.ts"
import type { EmbedTexts, EmbedTextsRequest, TokenizedText } from "../chat-format/embed-texts.ts"
import { grouped, oneAtATime } from "../chat-format/long-texts.ts"
import { timed, timedTokenize } from "../chat-format/pool.ts"
import { charactersOf, makeTokenizeTexts } from "../chat-format/tokenize-texts.ts"
import type { EmbedJobEvent, Prompts } from "../encoding/embed-job.ts"
import { promptFor } from "../encoding/prompts.ts"
import { decodeImages, type ImageFile } from "../images/decode-images.ts"
import type { VisionInfo, VisionJobRequest } from "../vision/vision-job.ts"
import type { Engine } from "../worker/host.ts"
import type { StageTime } from "../worker/protocol.ts"
import { dividedItems, type PlacedText } from "./embed-items.ts"
import { type EncoderPool, makeStageTimes, merged } from "./encoder-pool.ts"
import { cpu, digestFor } from "./evidence.ts"
import { type ItemPart, itemPart, type ReadItem, windowParts } from "./item-parts.ts"
import { microBatched } from "./micro-batch.ts"

export type VisionEngine = Engine<VisionJobRequest, EmbedJobEvent, VisionInfo>

export interface EmbedTaskDeps {
  readonly id: ModelId
  /** Folder of the model's files. */
  readonly folder: string
  readonly encoderPool: EncoderPool
  /** The tower by which the model sees images, where it has one. */
  readonly vision?: VisionEngine | undefined
  /** The maximum number of tokens of a text. */
  readonly contextTokens: number
  readonly prompts: Prompts
  /** The number of tokens that the encoder reads at once. */
  readonly window: number
  readonly workers: Workers
  readonly clock: Clock
  readonly log: Log
}

/**
 * Makes translators of engine events to embed events, one for each engine of a request; together
 * they meter each item when it is embedded.
 */
const makeTranslators = (id: ModelId, context: ModelContext) => {
  let total = noUsage
  const stageTimes = makeStageTimes()
  return (parts: readonly ItemPart[]) => {
    const stageTime = stageTimes()
    return (event: EmbedJobEvent | StageTime): readonly EmbedEvent[] | undefined => {
      if (event.type === "time") {
        const { stage, durationMs } = stageTime(event)
        context.time(stage, durationMs)
        return undefined
      }
      const part = parts[event.index]!
      const vector = part.whole(event.vector)
      if (!vector) return undefined
      const { index, truncated, usage } = part.of
      total = sumUsage([total, usage])
      context.meter(id, total)
      return [{ index, vector, truncated }]
    }
  }
}

/** Characters of requests that are tokenized in one job, which takes some milliseconds. */
const charactersAtOnce = 8_192

/** Many texts are tokenized in several jobs: in one they would hold up others. */
const inPieces = (
  input: EmbedTextsRequest,
  tokenize: (input: EmbedTextsRequest) => Effect.Effect<EmbedTexts, ApiError>,
): Effect.Effect<EmbedTexts, ApiError> => {
  const groups = grouped(input.texts, ({ length }) => length + input.instruction.length)
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

/** Tokenizes the texts of a request; fails with the first that is too long. */
const makeTokenized = (deps: EmbedTaskDeps) => {
  const { contextTokens, window, prompts, clock } = deps
  const tokenize = microBatched<EmbedTextsRequest, EmbedTexts, ApiError>({
    runAll: makeTokenizeTexts(deps),
    sizeOf: charactersOf,
    maxSize: charactersAtOnce,
  })
  return Effect.fnUntraced(function* (
    request: EmbedRequest,
    texts: readonly PlacedText[],
    context: ModelContext,
  ) {
    const input = {
      texts: texts.map(({ text }) => text),
      truncate: request.truncate,
      instruction: promptFor(prompts, request.instruction),
      maxTokens: contextTokens,
      window,
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
      { param: `input[${texts[index]!.index}]` },
    )
  })
}

/** The embed task of a pool of encoder engines, and of a vision tower where the model has one. */
export const makeEmbedTask = (deps: EmbedTaskDeps): Task<EmbedRequest, EmbedEvent> => {
  const { id, encoderPool, vision, workers, clock, log } = deps
  const tokenized = makeTokenized(deps)
  const decoded = (images: readonly ImageFile[], context: ModelContext, engine: VisionEngine) =>
    timed(clock, context, "images", decodeImages(workers, log, images, engine.info.preprocessing))
  const plan = Effect.fnUntraced(function* (request: EmbedRequest, context: ModelContext) {
    const { vocabulary } = encoderPool.info
    const items = yield* dividedItems(request, { vocabulary, images: vision !== undefined })
    const wait = { priority: context.priority, waitMs: Number.POSITIVE_INFINITY }
    const options = {
      ...wait,
      account: context.tenant.account,
      timeoutMs: () => context.deadlineMs - clock.nowMs(),
    }
    const translator = makeTranslators(id, context)
    const read: ReadItem[] = []
    const runs: Stream.Stream<EmbedEvent, ApiError>[] = []
    if (items.texts.length > 0) {
      yield* encoderPool.availableFor(wait)
      const texts = yield* tokenized(request, items.texts, context)
      const own = texts.map(({ tokens, truncated }, at): ReadItem => {
        const usage = usageOf({ inputTokens: tokens })
        return { index: items.texts[at]!.index, truncated, usage }
      })
      const inputs = texts.flatMap(({ windows }) => windows.map(({ ids }) => ids))
      const parts = texts.flatMap((text, at) => windowParts(own[at]!, text))
      runs.push(encoderPool.run(inputs, { ...options, translate: translator(parts) }))
      read.push(...own)
    }
    if (vision && items.images.length > 0) {
      yield* vision.availableFor(wait)
      const images = yield* decoded(items.images, context, vision)
      const usage = usageOf({ images: 1 })
      const own = items.images.map(({ index }): ReadItem => ({ index, truncated: false, usage }))
      runs.push(vision.run({ images }, { ...options, translate: translator(own.map(itemPart)) }))
      read.push(...own)
    }
    const files = { digest: encoderPool.info.modelDigest }
    const tower = items.images.length > 0 ? vision?.info.digest : undefined
    context.note?.({ model: digestFor(files, undefined, tower), cpu: cpu() })
    const planned: ModelPlan<EmbedEvent> = {
      bound: sumUsage(read.map(({ usage }) => usage)),
      run: merged(runs),
    }
    return planned
  })
  return { plan }
}
