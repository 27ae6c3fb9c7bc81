import { Effect, type Scope } from "effect"
import type { ApiError } from "../../core/errors.ts"
import type { Backend, LoadedModel, OpenRequest, TaskName } from "../../core/ports/model.ts"
import { chatCapabilities, makeDescribe } from "./abilities.ts"
import { exactPrefix, mapVersion, spaceDimensions } from "./encoding/stacked-rotations.ts"
import { makeEngines, type OnnxDeps } from "./engines.ts"
import { openEncoderPool } from "./open-encoder-pool.ts"
import { openImage } from "./open-image.ts"
import { makesNoVectors, openRerank } from "./open-rerank.ts"
import { openVisionTower } from "./open-vision-tower.ts"
import { failed, type OpenEntry, openDecoderModel, optionsOf, shape } from "./opening.ts"
import { entryOptions, wrongOptions } from "./options.ts"
import { makeChatTask } from "./tasks/chat-task.ts"
import { makeEmbedTask } from "./tasks/embed-task.ts"

const openChat: OpenEntry = Effect.fnUntraced(function* (deps, engineOf, request) {
  const { precision, queueWaitMs, schemaInPrompt } = yield* optionsOf(entryOptions.chat, request)
  const model = yield* openDecoderModel(deps, engineOf, precision, request)
  yield* deps.vocabularies.add(model.engine.info.grammarVocabulary)
  const adapters = request.adapters?.map(({ id }) => id) ?? []
  const task = makeChatTask({ ...model, adapters, queueWaitMs, schemaInPrompt })
  const capabilities = chatCapabilities(model.engine.info.thinks, deps.settings)
  return { ...shape, ...model.open, task, capabilities, adapters } satisfies LoadedModel<"chat">
})

const openEmbed: OpenEntry = Effect.fnUntraced(function* (deps, engineOf, request) {
  const options = yield* optionsOf(entryOptions.embed, request)
  const { precision, space, instances, instructionTemplate, ...encoder } = options
  const files = { ...request, adapters: [] }
  const { encoderPool, path } = yield* openEncoderPool(engineOf, files, {
    precision,
    instances,
    threads: deps.settings.threads,
    encoder,
  })
  const { name, digest, maxTokens, width, map } = encoderPool.info
  if (encoderPool.info.output !== "vector") return yield* failed(makesNoVectors(request.path))
  const vision = yield* openVisionTower(engineOf, request, precision, encoderPool.info)
  const { contextTokens } = request
  const task = makeEmbedTask({
    id: request.id,
    folder: path,
    encoderPool,
    vision,
    contextTokens,
    prompts: { ...encoderPool.info.prompts, ...(instructionTemplate && { instructionTemplate }) },
    window: maxTokens,
    ...deps.services(),
  })
  const weights = [...new Set([digest, ...(vision ? [vision.info.digest] : [])])].join("-")
  const sum = (...counts: (number | undefined)[]) =>
    counts.reduce<number>((a, b) => a + (b ?? 0), 0)
  return {
    ...shape,
    task,
    contextTokens,
    modalities: vision ? ["text", "image"] : ["text"],
    adapters: request.adapters?.map((own) => own.id) ?? [],
    embeddingSpace: `${space ?? name}-${weights}-${spaceDimensions}${map}`,
    embeddingWidth: exactPrefix(width, spaceDimensions, map === mapVersion(true)),
    stats: () => ({ restarts: sum(encoderPool.stats().restarts, vision?.stats().restarts) }),
  } satisfies LoadedModel<"embed">
})

const openers: Readonly<Record<TaskName, OpenEntry>> = {
  chat: openChat,
  rerank: openRerank,
  embed: openEmbed,
  image: openImage,
}

const openModel = (deps: OnnxDeps): Backend["open"] => {
  const engineOf = makeEngines(deps)
  return <T extends TaskName>(request: OpenRequest<T>) =>
    openers[request.task](deps, engineOf, request) as Effect.Effect<
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
  tasks: ["chat", "embed", "rerank", "image"],
  check: wrongOptions,
  describe: makeDescribe(deps.settings),
  open: openModel(deps),
})
