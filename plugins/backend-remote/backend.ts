import { Effect, type Scope } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { TranscribeEvent, TranscribeRequest } from "../../core/ports/audio.ts"
import type { ImageEvent } from "../../core/ports/image.ts"
import type {
  Backend,
  ChatEvent,
  ChatRequest,
  EmbedEvent,
  EmbedRequest,
  ImageRequest,
  LoadedModel,
  OpenRequest,
  RerankEvent,
  RerankRequest,
  TaskName,
} from "../../core/ports/model.ts"
import { adapterName } from "../../core/services/model-entry.ts"
import { makeChatTask } from "./chat/chat-task.ts"
import { callableTools, hasMedia } from "./chat/chat-wishes.ts"
import { makeFallback } from "./fallback.ts"
import { servedAt, servedBy, type UpstreamHealth } from "./health.ts"
import type { Feature } from "./kinds.ts"
import { decodeOptions, type RemoteOptions } from "./options.ts"
import { openRemoteModel, type RemoteModel, type RemoteServices } from "./remote-model.ts"
import { makeEmbedTask } from "./tasks/embed-task.ts"
import { makeImageTask } from "./tasks/image-task.ts"
import { makeRerankTask } from "./tasks/rerank-task.ts"
import { makeTranscribeTask } from "./tasks/transcribe-task.ts"
import type { Probed } from "./upstream/probe.ts"

export interface RemoteDeps {
  readonly health: UpstreamHealth
  readonly services: () => RemoteServices
}

const cannotOpen = (id: string, why: string): ApiError =>
  apiError("backend_error", `The model '${id}' can't be opened: ${why}`)

/** What the models of a chain, and what they fall back on, must have and be. */
const checkChain = (
  { id, task }: Pick<OpenRequest, "id" | "task">,
  { fallback }: RemoteOptions,
  { catalogue }: RemoteServices,
): string | undefined => {
  for (const next of fallback) {
    const entry = catalogue.entry(next)
    if (!entry) return `its fallback '${next}' is no model of this deployment`
    if (entry.task !== task) return `its fallback '${next}' has the task ${entry.task}`
    if (next === id) return "it falls back on itself"
    const further = (entry.options as { readonly fallback?: unknown } | undefined)?.fallback
    if (Array.isArray(further) && further.length > 0)
      return `its fallback '${next}' has a fallback of its own: list all models in one chain`
  }
  return undefined
}

const chatCapabilities = ({ upstreams }: Pick<RemoteModel, "upstreams">): readonly string[] => {
  const keeps = (feature: Feature) => upstreams.some(({ features }) => features.has(feature))
  return [
    ...(keeps("tools") ? ["tool_use"] : []),
    ...(keeps("json_schema") || keeps("json_object") ? ["structured_output"] : []),
    ...(keeps("thinking") ? ["thinking"] : []),
    ...(keeps("images") ? ["vision"] : []),
    ...(keeps("cache_control") ? ["prompt_caching"] : []),
  ]
}

/**
 * The request as a model of the chain, or one with its adapter (`svc-lyt:legal`), takes it; undefined
 * where it can't do all of it.
 */
const fitChat =
  ({ catalogue }: RemoteServices) =>
  (
    request: ChatRequest,
    { capabilities, modalities }: Pick<LoadedModel, "capabilities" | "modalities">,
    model: string,
  ): ChatRequest | undefined => {
    const needs = [
      ...(callableTools(request).length > 0 ? ["tool_use"] : []),
      ...(request.responseFormat ? ["structured_output"] : []),
      ...(request.thinking === true ? ["thinking"] : []),
    ]
    if (needs.some((need) => !capabilities.includes(need))) return undefined
    if (hasMedia(request) && !modalities.includes("image")) return undefined
    const entry = catalogue.entry(model)!
    const adapter = entry.adapters.find((own) => adapterName(entry.id, own) === model)
    const { maxOutputTokens } = catalogue.served(entry)
    return {
      ...request,
      maxTokens: Math.min(request.maxTokens, maxOutputTokens),
      ...(adapter && { adapter: { id: adapter.id, strength: 1 } }),
    }
  }

type Opener = (
  model: RemoteModel,
  services: RemoteServices,
  probed: readonly Probed[],
) => LoadedModel<TaskName>

const shapeOf = (model: RemoteModel) => ({
  contextTokens: model.contextTokens,
  modalities: ["text"],
  capabilities: [],
  adapters: [],
})

const openChat: Opener = (model, services) => {
  const { id, options, upstreams } = model
  const chain = { id, task: "chat" as const, chain: options.fallback }
  const fallback = makeFallback<"chat", ChatRequest, ChatEvent>(chain, services, fitChat(services))
  const ofFallbacks = options.fallback.flatMap(
    (next) => services.catalogue.entry(next)?.capabilities ?? [],
  )
  const takesImages =
    // llama.cpp says it by itself, whenever it is there
    upstreams.some((own) => own.features.has("images") || own.options.kind === "llamacpp") ||
    options.fallback.some((next) => services.catalogue.entry(next)?.modalities.includes("image"))
  return {
    ...shapeOf(model),
    task: makeChatTask(model, fallback),
    // of videos they get frames
    modalities: takesImages ? ["text", "image", "video"] : ["text"],
    capabilities: [...new Set([...chatCapabilities(model), ...ofFallbacks])],
    ...(options.recommendedTemperature !== undefined && {
      advisedSampling: { temperature: options.recommendedTemperature, source: "config" as const },
    }),
    servedBy: servedBy(model),
    get servedAt() {
      return servedAt(model)
    },
  } as LoadedModel<TaskName>
}

const openEmbed: Opener = (model, services, probed) => {
  const { id, options, upstreams } = model
  const { dimensions, instructionTemplate = "{instruction} " } = options
  const takesImages =
    upstreams.length > 0 &&
    upstreams.every((upstream) => upstream.options.kind === "rakit") &&
    probed.length > 0 &&
    probed.every(({ modalities }) => modalities.includes("image"))
  const known = probed.flatMap((one) => one.embeddingSpace ?? [])[0]
  const embeddingSpace = options.space ?? known ?? upstreams[0]?.options.model ?? id
  const chain = { id, task: "embed" as const, chain: options.fallback }
  // vectors of different spaces can't be compared
  const fallback = makeFallback<"embed", EmbedRequest, EmbedEvent>(
    chain,
    services,
    (request, loaded) => (loaded.embeddingSpace === embeddingSpace ? request : undefined),
  )
  const shape = { dimensions, takesImages, instructionTemplate }
  return {
    ...shapeOf(model),
    task: makeEmbedTask(model, shape, fallback),
    modalities: takesImages ? ["text", "image"] : ["text"],
    embeddingSpace,
    servedBy: servedBy(model),
    get servedAt() {
      return servedAt(model)
    },
  } as LoadedModel<TaskName>
}

const openRerank: Opener = (model, services) => {
  const { id, options } = model
  const chain = { id, task: "rerank" as const, chain: options.fallback }
  const fallback = makeFallback<"rerank", RerankRequest, RerankEvent>(
    chain,
    services,
    (request) => request,
  )
  return {
    ...shapeOf(model),
    task: makeRerankTask(model, fallback),
    servedBy: servedBy(model),
    get servedAt() {
      return servedAt(model)
    },
  } as LoadedModel<TaskName>
}

const openImage: Opener = (model, services, probed) => {
  const { id, options, upstreams } = model
  const ofFallbacks = options.fallback.flatMap(
    (next) => services.catalogue.entry(next)?.capabilities ?? [],
  )
  // another Rakit says whether its model edits
  const saysNo =
    probed.some(({ capabilities }) => capabilities.includes("image_generation")) &&
    !probed.some(({ capabilities }) => capabilities.includes("image_editing"))
  const edits =
    (!saysNo && upstreams.some(({ features }) => features.has("image_edits"))) ||
    ofFallbacks.includes("image_editing")
  const chain = { id, task: "image" as const, chain: options.fallback }
  const fallback = makeFallback<"image", ImageRequest, ImageEvent>(
    chain,
    services,
    (request, { capabilities }) =>
      request.images.length > 0 && !capabilities.includes("image_editing") ? undefined : request,
  )
  return {
    ...shapeOf(model),
    task: makeImageTask(model, services.outbound, fallback),
    modalities: edits ? ["text", "image"] : ["text"],
    capabilities: edits ? ["image_editing"] : [],
    servedBy: servedBy(model),
    get servedAt() {
      return servedAt(model)
    },
  } as LoadedModel<TaskName>
}

const openTranscribe: Opener = (model, services) => {
  const chain = { id: model.id, task: "transcribe" as const, chain: model.options.fallback }
  const fallback = makeFallback<"transcribe", TranscribeRequest, TranscribeEvent>(
    chain,
    services,
    (request) => request,
  )
  return {
    ...shapeOf(model),
    task: makeTranscribeTask(model, fallback),
    servedBy: servedBy(model),
    get servedAt() {
      return servedAt(model)
    },
  } as LoadedModel<TaskName>
}

const openers: Partial<Record<TaskName, Opener>> = {
  chat: openChat,
  embed: openEmbed,
  rerank: openRerank,
  image: openImage,
  transcribe: openTranscribe,
}

const openModel = (deps: RemoteDeps, request: OpenRequest) =>
  Effect.gen(function* () {
    const { id, task, contextTokens: promised } = request
    const services = deps.services()
    const options = decodeOptions(task, request.options)
    if (typeof options === "string") return yield* cannotOpen(id, options)
    const wrong = checkChain(request, options, services)
    if (wrong !== undefined) return yield* cannotOpen(id, wrong)
    const opened = yield* Effect.mapError(
      openRemoteModel(request, options, services),
      ({ message }) => cannotOpen(id, message),
    )
    request.progress("asking the upstreams for their models")
    const probed = yield* deps.health.watch(opened)
    const windows = probed.flatMap(({ contextTokens }) => contextTokens ?? [])
    const model: RemoteModel = { ...opened, contextTokens: Math.min(promised, ...windows) }
    return openers[task]!(model, services, probed)
  })

/** Models that OpenAI-compatible servers serve. */
export const makeRemoteBackend = (deps: RemoteDeps): Backend => ({
  name: "remote",
  tasks: ["chat", "embed", "rerank", "image", "transcribe"],
  check: (task, options) => {
    const decoded = decodeOptions(task, options)
    return typeof decoded === "string" ? decoded : undefined
  },
  open: <T extends TaskName>(request: OpenRequest<T>) =>
    openModel(deps, request) as unknown as Effect.Effect<LoadedModel<T>, ApiError, Scope.Scope>,
})
