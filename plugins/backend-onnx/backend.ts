import { Effect, Schema, type Scope } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { Backend, LoadedModel, OpenRequest, TaskName } from "../../core/ports/model.ts"
import { chatCapabilities, makeDescribe } from "./abilities.ts"
import { spaceDimensions } from "./encoding/stacked-rotations.ts"
import { type EngineOf, makeEngines, type OnnxDeps } from "./engines.ts"
import type { DecoderEvent, DecoderInfo, DecoderRequest } from "./generation/decoder-jobs.ts"
import { openEncoderPool } from "./open-encoder-pool.ts"
import { openVisionTower } from "./open-vision-tower.ts"
import { entryOptions, wrongOptions } from "./options.ts"
import { makeChatTask } from "./tasks/chat-task.ts"
import { makeEmbedTask } from "./tasks/embed-task.ts"
import { makeRerankTask } from "./tasks/rerank-task.ts"
import type { EngineSpec } from "./worker/protocol.ts"

type OpenEntry = (
  deps: OnnxDeps,
  engineOf: EngineOf,
  request: OpenRequest,
) => Effect.Effect<
  LoadedModel<"chat"> | LoadedModel<"embed"> | LoadedModel<"rerank">,
  ApiError,
  Scope.Scope
>

const failed = (message: string): ApiError => apiError("backend_error", message)

const optionsOf = <A>(
  schema: Schema.Codec<A, unknown>,
  request: OpenRequest,
): Effect.Effect<A, ApiError> =>
  Effect.mapError(Schema.decodeUnknownEffect(schema)(request.options ?? {}), (error) =>
    failed(`The options of the model '${request.id}' are wrong: ${error.message}`),
  )

const shape = { modalities: ["text"], capabilities: [], adapters: [], servedBy: "onnx cpu" }

/** Chat and rerank models are both decoders, and share an engine where they name the same file. */
const openDecoderModel = Effect.fnUntraced(function* (
  deps: OnnxDeps,
  engineOf: EngineOf,
  precision: EngineSpec["precision"],
  request: OpenRequest,
) {
  const { engine } = yield* engineOf<DecoderRequest, DecoderEvent, DecoderInfo>(
    { kind: "decoder", precision },
    request,
  )
  const contextTokens = Math.min(request.contextTokens, engine.info.contextTokens)
  const services = deps.services()
  if (engine.info.roundingDiffers)
    services.log.warn(
      "model.rounding_differs",
      "this CPU computes a row differently in other company, so the same request may get another answer",
      { model: request.id },
    )
  return {
    id: request.id,
    engine,
    contextTokens,
    open: {
      contextTokens,
      stats: () => ({
        ...engine.stats(),
        reproducible: engine.info.digest === undefined ? 0 : 1,
      }),
    },
    ...services,
  }
})

const openChat: OpenEntry = Effect.fnUntraced(function* (deps, engineOf, request) {
  const { precision, queueWaitMs, schemaInPrompt } = yield* optionsOf(entryOptions.chat, request)
  const model = yield* openDecoderModel(deps, engineOf, precision, request)
  yield* deps.vocabularies.add(model.engine.info.grammarVocabulary)
  const adapters = request.adapters?.map(({ id }) => id) ?? []
  const task = makeChatTask({ ...model, adapters, queueWaitMs, schemaInPrompt })
  const capabilities = chatCapabilities(model.engine.info.thinks, deps.settings)
  return { ...shape, ...model.open, task, capabilities, adapters } satisfies LoadedModel<"chat">
})

const openRerank: OpenEntry = Effect.fnUntraced(function* (deps, engineOf, request) {
  const { precision, instruction } = yield* optionsOf(entryOptions.rerank, request)
  const model = yield* openDecoderModel(deps, engineOf, precision, request)
  const { yesTokens, noTokens } = model.engine.info
  if (!yesTokens.length || !noTokens.length)
    return yield* failed(
      `${request.path}: 'yes' and 'no' are not tokens of its vocabulary, so it can't rerank`,
    )
  const task = makeRerankTask({ ...model, instruction })
  return { ...shape, ...model.open, task } satisfies LoadedModel<"rerank">
})

const openEmbed: OpenEntry = Effect.fnUntraced(function* (deps, engineOf, request) {
  const { precision, space, instances, ...encoder } = yield* optionsOf(entryOptions.embed, request)
  const files = { ...request, adapters: [] }
  const { encoderPool, path } = yield* openEncoderPool(engineOf, files, {
    precision,
    instances: Math.min(instances, deps.settings.threads),
    encoder,
  })
  const { name, digest, maxTokens, map } = encoderPool.info
  if (encoderPool.info.output !== "vector")
    return yield* failed(
      `${request.path}: it is a classifier of pairs, which makes no vectors: name it in an entry of the task rerank`,
    )
  const vision = yield* openVisionTower(engineOf, request, encoderPool.info)
  const contextTokens = Math.min(request.contextTokens, maxTokens)
  const task = makeEmbedTask({
    id: request.id,
    folder: path,
    encoderPool,
    vision,
    contextTokens,
    ...deps.services(),
  })
  const weights = vision ? `${digest}-${vision.info.digest}` : digest
  const sum = (...counts: (number | undefined)[]) =>
    counts.reduce<number>((a, b) => a + (b ?? 0), 0)
  return {
    ...shape,
    task,
    contextTokens,
    modalities: vision ? ["text", "image"] : ["text"],
    adapters: request.adapters?.map((own) => own.id) ?? [],
    embeddingSpace: `${space ?? name}-${weights}-${spaceDimensions}${map}`,
    stats: () => ({ restarts: sum(encoderPool.stats().restarts, vision?.stats().restarts) }),
  } satisfies LoadedModel<"embed">
})

const openers: Partial<Record<TaskName, OpenEntry>> = {
  chat: openChat,
  rerank: openRerank,
  embed: openEmbed,
}

const openModel = (deps: OnnxDeps): Backend["open"] => {
  const engineOf = makeEngines(deps)
  return <T extends TaskName>(request: OpenRequest<T>) =>
    (openers[request.task]?.(deps, engineOf, request) ??
      Effect.fail(failed(`backend-onnx opens no ${request.task} models`))) as Effect.Effect<
      LoadedModel<T>,
      ApiError,
      Scope.Scope
    >
}

/**
 * ONNX Runtime on the CPU. Every decoder runs in a worker thread of its own, an encoder in several.
 */
export const makeOnnxBackend = (deps: OnnxDeps): Backend => ({
  name: "onnx",
  tasks: ["chat", "embed", "rerank"],
  check: wrongOptions,
  describe: makeDescribe(deps.settings),
  open: openModel(deps),
})
