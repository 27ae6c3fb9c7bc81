import { Effect, type Scope } from "effect"
import type { ApiError } from "../../core/errors.ts"
import type { LoadedModel } from "../../core/ports/model.ts"
import { readModelHeader } from "./architectures/model-source.ts"
import {
  answerSpellings,
  ownRerankTemplate,
  type RerankTemplate,
} from "./chat-format/rerank-template.ts"
import { isClassifierFolder } from "./encoding/families.ts"
import type { Precision } from "./onnx/linear.ts"
import { openEncoderPool } from "./open-encoder-pool.ts"
import { failed, type OpenEntry, openDecoderModel, optionsOf, shape } from "./opening.ts"
import { entryOptions, type RerankOptions } from "./options.ts"
import { decoderScorer, encoderScorer } from "./tasks/rerank-scorers.ts"
import { makeRerankTask } from "./tasks/rerank-task.ts"

/** Longer queries are refused by a cross-encoder, whatever the config promises. */
const longestQueryTokens = 8_192

/**
 * The window of a cross-encoder: of a query, as texts that are longer than the encoder's own are
 * read in windows.
 */
export const crossEncoderWindow = (promised: number): number =>
  Math.min(promised, longestQueryTokens)

/** Why a classifier of pairs does not embed. */
export const makesNoVectors = (path: string): string =>
  `${path}: it is a classifier of pairs, which makes no vectors: name it in an entry of the task rerank`

/** Why a cross-encoder can't be opened so; undefined: it can. */
export const wrongPrecision = (path: string, precision: Precision): string | undefined =>
  precision === "int4" || precision === "int8-channel"
    ? `${path}: a cross-encoder is kept in int8 or fp32, not in ${precision}`
    : undefined

/** A file that can't be read is reported by the thread that opens it. */
const chatTemplateOf = (path: string): string => {
  try {
    return readModelHeader(path).template
  } catch {
    return ""
  }
}

type OpenRerank = (
  ...args: [...Parameters<OpenEntry>, RerankOptions]
) => Effect.Effect<LoadedModel<"rerank">, ApiError, Scope.Scope>

/** A decoder that is asked for yes or no. */
const openCausalRerank: OpenRerank = Effect.fnUntraced(function* (
  deps,
  engineOf,
  request,
  { precision, instruction, template: chosen },
) {
  const own: RerankTemplate =
    chosen === "auto" ? ownRerankTemplate(request.path, chatTemplateOf(request.path)) : chosen
  const model = yield* openDecoderModel(deps, engineOf, { precision }, request)
  const { info } = model.engine
  const spellings = answerSpellings[own]
  const [yesTokens, noTokens] = [info.yesTokens[spellings], info.noTokens[spellings]]
  if (!yesTokens.length || !noTokens.length)
    return yield* failed(
      `${request.path}: 'yes' and 'no' are not tokens of its vocabulary, so it can't rerank`,
    )
  const scorer = { ...model, instruction, template: own, yesTokens, noTokens }
  const task = makeRerankTask(model, decoderScorer(model, scorer))
  return { ...shape, ...model.open, task } satisfies LoadedModel<"rerank">
})

/** A classifier of pairs. */
const openCrossEncoder: OpenRerank = Effect.fnUntraced(function* (
  deps,
  engineOf,
  request,
  { precision, instances },
) {
  const wrong = wrongPrecision(request.path, precision)
  if (wrong !== undefined) return yield* failed(wrong)
  const { encoderPool, path } = yield* openEncoderPool(engineOf, request, {
    precision: precision === "int8" ? precision : "fp32",
    instances,
    threads: deps.settings.threads,
    isOnDevice: deps.provider !== undefined,
  })
  const contextTokens = crossEncoderWindow(request.contextTokens)
  const task = makeRerankTask(
    { id: request.id, ...deps.services() },
    encoderScorer(deps.services(), { folder: path, encoderPool, contextTokens }),
  )
  const { stats } = encoderPool
  return { ...shape, task, contextTokens, stats } satisfies LoadedModel<"rerank">
})

/** Opens a classifier of pairs, or a decoder, as the files are. */
export const openRerank: OpenEntry = Effect.fnUntraced(function* (deps, engineOf, request) {
  const options = yield* optionsOf(entryOptions.rerank, request)
  const isClassifier = yield* Effect.try({
    try: () => isClassifierFolder(request.path),
    catch: (cause) => failed((cause as Error).message),
  })
  const open = isClassifier ? openCrossEncoder : openCausalRerank
  return yield* open(deps, engineOf, request, options)
})
