import { Effect, type Scope } from "effect"
import type { ApiError } from "../../core/errors.ts"
import type { Backend, LoadedModel, OpenRequest, Task, TaskName } from "../../core/ports/model.ts"
import { chatCapabilities, makeDescribe, modalitiesOf } from "./abilities.ts"
import { exactPrefix, mapVersion, spaceDimensions } from "./encoding/stacked-rotations.ts"
import { type EngineOf, makeEngines, type OnnxDeps } from "./engines.ts"
import { adapterRoles, openChatImages } from "./open-chat-images.ts"
import { hearsSounds, openChatSounds } from "./open-chat-sounds.ts"
import { dictationPath, openDictation } from "./open-dictation.ts"
import { openEncoderPool } from "./open-encoder-pool.ts"
import { openImage } from "./open-image.ts"
import { makesNoVectors, openRerank } from "./open-rerank.ts"
import { openTranscribe } from "./open-transcribe.ts"
import { openVisionTower } from "./open-vision-tower.ts"
import { failed, type OpenEntry, openDecoderModel, optionsOf, shape } from "./opening.ts"
import { entryOptions, wrongOptions } from "./options.ts"
import { makeChatTask } from "./tasks/chat-task.ts"
import { makeEmbedTask } from "./tasks/embed-task.ts"
import type { Engine } from "./worker/host.ts"

/** The operator's word counts before that of the model's files. */
const samplingBy = (
  config: number | undefined,
  files: number | undefined,
): Pick<LoadedModel, "advisedSampling"> => {
  if (config !== undefined) return { advisedSampling: { temperature: config, source: "config" } }
  return files === undefined ? {} : { advisedSampling: { temperature: files, source: "files" } }
}

const openChat: OpenEntry = Effect.fnUntraced(function* (deps, engineOf, request) {
  const options = yield* optionsOf(entryOptions.chat, request)
  const { precision, promptPrecision, queueWaitMs, schemaInPrompt, recommendedTemperature } =
    options
  const { vision, hearing, loras, chosen: adapters, own } = adapterRoles(request.adapters)
  if (own && adapters.length)
    return yield* failed(
      `The model '${request.id}' has the adapters ${adapters.join(", ")}, and its part '${own.id}' has a LoRA that requests with images have: a request has one adapter.`,
    )
  const model = yield* openDecoderModel(
    deps,
    engineOf,
    { precision, ...(promptPrecision && { promptPrecision }) },
    { ...request, adapters: loras },
  )
  yield* deps.vocabularies.add(model.engine.info.grammarVocabulary)
  const media =
    (yield* openChatImages(deps, engineOf, request, { ...model, precision })) ??
    (yield* openChatSounds(deps, engineOf, request, { ...model, precision }))
  const listens = media !== undefined && hearsSounds(request)
  const chat = makeChatTask({
    ...model,
    adapters,
    ...(own && { ownAdapter: own }),
    media,
    queueWaitMs,
    schemaInPrompt,
  })
  const task = yield* openDictation(deps, engineOf, request, chat)
  const sees = media !== undefined && !listens
  const hears = listens || dictationPath(request) !== undefined
  const { thinks, advisedTemperature } = model.engine.info
  const capabilities = chatCapabilities(thinks, deps.settings, sees)
  // a part that was given and not opened is left out, so that the entry is refused
  const opened = { vision: sees && vision, hearing: hears && hearing }
  const parts = Object.entries(opened).flatMap(([part, path]) => (path ? [part] : []))
  return {
    ...shape,
    ...model.open,
    task,
    modalities: modalitiesOf({ sees, hears }),
    capabilities,
    adapters,
    ...(parts.length > 0 && { parts }),
    ...samplingBy(recommendedTemperature, advisedTemperature),
  } satisfies LoadedModel<"chat">
})

const openEmbed: OpenEntry = Effect.fnUntraced(function* (deps, engineOf, request) {
  const options = yield* optionsOf(entryOptions.embed, request)
  const { precision, space, instances, instructionTemplate, ...encoder } = options
  const files = { ...request, adapters: [] }
  const { encoderPool, path } = yield* openEncoderPool(engineOf, files, {
    precision,
    instances,
    threads: deps.settings.threads,
    isOnDevice: deps.provider !== undefined,
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
    // without a tower none was opened, and the entry that has them is refused
    adapters: vision ? (request.adapters ?? []).map((own) => own.id) : [],
    embeddingSpace: `${space ?? name}-${weights}-${spaceDimensions}${map}`,
    embeddingWidth: exactPrefix(width, spaceDimensions, map === mapVersion(true)),
    stats: () => ({ restarts: sum(encoderPool.stats().restarts, vision?.stats().restarts) }),
  } satisfies LoadedModel<"embed">
})

const openers: Readonly<Record<keyof typeof entryOptions, OpenEntry>> = {
  chat: openChat,
  rerank: openRerank,
  embed: openEmbed,
  image: openImage,
  transcribe: openTranscribe,
}

/** The model, which says where its engines run, and notes it for the receipts of its calls. */
const onItsDevice = <T extends TaskName>(
  loaded: LoadedModel<T>,
  engines: readonly Pick<Engine<never, never, never>, "servedBy">[],
): LoadedModel<T> => {
  const places = () => [...new Set(engines.map((engine) => engine.servedBy()))]
  const servedBy = () => places().find((place) => place.endsWith(" cpu")) ?? places()[0]!
  const inner = loaded.task as Task<unknown, unknown>
  const task: Task<unknown, unknown> = {
    plan: (request, context) =>
      Effect.tap(inner.plan(request, context), () =>
        Effect.sync(() => context.note?.({ device: servedBy() })),
      ),
  }
  return Object.defineProperty({ ...loaded, task: task as LoadedModel<T>["task"] }, "servedBy", {
    get: servedBy,
    enumerable: true,
  })
}

const openModel = (deps: OnnxDeps): Backend["open"] => {
  const engineOf = makeEngines(deps)
  return <T extends TaskName>(request: OpenRequest<T>) => {
    const engines: Engine<never, never, never>[] = []
    const watched = ((...args: Parameters<EngineOf>) =>
      Effect.tap(engineOf(...args), ({ engine }) =>
        Effect.sync(() => void engines.push(engine as never)),
      )) as EngineOf
    const opened = openers[request.task as keyof typeof openers](
      deps,
      watched,
      request,
    ) as Effect.Effect<LoadedModel<T>, ApiError, Scope.Scope>
    return deps.provider ? Effect.map(opened, (loaded) => onItsDevice(loaded, engines)) : opened
  }
}

/**
 * ONNX Runtime, on the CPU or on the device of a provider, by whose name entries ask for it. On the
 * CPU every decoder runs in a worker thread of its own, an encoder in several.
 */
export const makeOnnxBackend = (deps: OnnxDeps): Backend => ({
  name: deps.provider?.name ?? "onnx",
  tasks: ["chat", "embed", "rerank", "image", "transcribe"],
  check: wrongOptions,
  describe: makeDescribe(deps),
  open: openModel(deps),
})
