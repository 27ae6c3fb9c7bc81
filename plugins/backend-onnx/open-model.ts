import { realpath } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Schema, type Scope } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { LoadedModel, OpenRequest, TaskName } from "../../core/ports/model.ts"
import type { Clock } from "../../core/services/clock.ts"
import type { Log } from "../../core/services/log.ts"
import type { Workers } from "../../core/services/workers.ts"
import type { EmbedJobEvent, EmbedJobRequest, EncoderInfo } from "./encoding/embed-job.ts"
import { mapVersion, spaceDimensions } from "./encoding/stacked-rotations.ts"
import type { DecoderEvent, DecoderInfo, DecoderRequest } from "./generation/decoder-jobs.ts"
import { entryOptions } from "./options.ts"
import type { OnnxSettings } from "./settings.ts"
import { makeChatTask } from "./tasks/chat-task.ts"
import { makeEmbedTask } from "./tasks/embed-task.ts"
import { makeEncoderPool } from "./tasks/encoder-pool.ts"
import { makeRerankTask } from "./tasks/rerank-task.ts"
import type { EngineHealth } from "./worker/health.ts"
import { type Engine, startEngine } from "./worker/host.ts"
import type { EngineSpec } from "./worker/protocol.ts"
import { makeRefCounted } from "./worker/ref-counted.ts"

/** What the backend is made of; `services` is called when the first model is opened. */
export interface OnnxDeps {
  readonly settings: OnnxSettings
  readonly health: EngineHealth
  services(): {
    readonly dataDir: string
    readonly workers: Workers
    readonly clock: Clock
    readonly log: Log
  }
}

const failed = (message: string): ApiError => apiError("backend_error", message)

const optionsOf = <A>(
  schema: Schema.Codec<A, unknown>,
  request: OpenRequest,
): Effect.Effect<A, ApiError> =>
  Effect.mapError(Schema.decodeUnknownEffect(schema)(request.options ?? {}), (error) =>
    failed(`The options of the model '${request.id}' are wrong: ${error.message}`),
  )

interface OpenedEngine<Job, Event, Info> {
  readonly engine: Engine<Job, Event, Info>
  /** Of the model, without links. */
  readonly path: string
}

/** Which of the engines that share the work of a model, and its threads. */
interface Instance {
  readonly index: number
  readonly of: number
}

/** One engine for each model file, precision and instance, whatever number of entries points to it. */
const makeEngines = ({ settings, health, services }: OnnxDeps) => {
  const shared = makeRefCounted<Engine<never, unknown, unknown>, ApiError>()
  return <Job, Event, Info>(
    kind: EngineSpec["kind"],
    precision: EngineSpec["precision"],
    request: OpenRequest,
    instance: Instance = { index: 0, of: 1 },
  ): Effect.Effect<OpenedEngine<Job, Event, Info>, ApiError, Scope.Scope> =>
    Effect.gen(function* () {
      const { dataDir, log } = services()
      const path = yield* Effect.tryPromise({
        try: () => realpath(request.path),
        catch: (cause) => failed(`${request.path}: can't be read (${(cause as Error).message})`),
      })
      const { slots, queue, speculation } = settings
      // the first ones have one more where they don't divide evenly
      const threads = Math.floor(
        (settings.threads + instance.of - 1 - instance.index) / instance.of,
      )
      const memory = {
        kvBytes: settings.kvMemoryMb * megabyte,
        prefixCacheBytes: settings.prefixCacheMb * megabyte,
      }
      const spec: EngineSpec = {
        kind,
        path,
        precision,
        graphs: join(dataDir, "graphs"),
        threads,
        slots,
        ...memory,
        speculation,
      }
      const open = startEngine<Job, Event, Info>({
        spec,
        queue,
        log,
        progress: (detail) => request.progress(detail),
      }).pipe(Effect.tap((engine) => health.watch(path, engine)))
      const engine = yield* shared.get(
        `${kind} ${precision} ${instance.index}/${instance.of} ${path}`,
        open as unknown as Effect.Effect<Engine<never, unknown, unknown>, ApiError, Scope.Scope>,
      )
      return { path, engine: engine as unknown as Engine<Job, Event, Info> }
    })
}

const megabyte = 2 ** 20

type OpenEntry = (
  request: OpenRequest,
) => Effect.Effect<
  LoadedModel<"chat"> | LoadedModel<"embed"> | LoadedModel<"rerank">,
  ApiError,
  Scope.Scope
>

const shape = { modalities: ["text"], adapters: [], servedBy: "onnx cpu" }

export const openModel = (deps: OnnxDeps) => {
  const engineOf = makeEngines(deps)
  const openDecoderEngine = Effect.fnUntraced(function* (
    precision: EngineSpec["precision"],
    request: OpenRequest,
  ) {
    const { engine } = yield* engineOf<DecoderRequest, DecoderEvent, DecoderInfo>(
      "decoder",
      precision,
      request,
    )
    return {
      id: request.id,
      engine,
      contextTokens: Math.min(request.contextTokens, engine.info.contextTokens),
      ...deps.services(),
    }
  })
  const openChat: OpenEntry = Effect.fnUntraced(function* (request) {
    const { precision, queueWaitMs } = yield* optionsOf(entryOptions.chat, request)
    const model = yield* openDecoderEngine(precision, request)
    return {
      ...shape,
      task: makeChatTask({ ...model, queueWaitMs }),
      contextTokens: model.contextTokens,
    } satisfies LoadedModel<"chat">
  })
  const openRerank: OpenEntry = Effect.fnUntraced(function* (request) {
    const { precision, instruction } = yield* optionsOf(entryOptions.rerank, request)
    const model = yield* openDecoderEngine(precision, request)
    const { yesTokens, noTokens } = model.engine.info
    if (!yesTokens.length || !noTokens.length)
      return yield* failed(
        `${request.path}: 'yes' and 'no' are not tokens of its vocabulary, so it can't rerank`,
      )
    return {
      ...shape,
      task: makeRerankTask({ ...model, instruction }),
      contextTokens: model.contextTokens,
    } satisfies LoadedModel<"rerank">
  })
  const openEmbed: OpenEntry = Effect.fnUntraced(function* (request) {
    const { precision, space, instances } = yield* optionsOf(entryOptions.embed, request)
    const of = Math.min(instances, deps.settings.threads)
    const openInstance = (index: number) =>
      engineOf<EmbedJobRequest, EmbedJobEvent, EncoderInfo>("encoder", precision, request, {
        index,
        of,
      })
    // the first builds the graph
    const { engine: first, path } = yield* openInstance(0)
    const others = yield* Effect.forEach(
      Array.from({ length: of - 1 }, (_, i) => i + 1),
      openInstance,
      { concurrency: "unbounded" },
    )
    const encoderPool = makeEncoderPool([first, ...others.map(({ engine }) => engine)])
    const contextTokens = Math.min(request.contextTokens, encoderPool.info.maxTokens)
    const task = makeEmbedTask({
      id: request.id,
      folder: path,
      encoderPool,
      contextTokens,
      ...deps.services(),
    })
    const embeddingSpace = `${space ?? encoderPool.info.name}-${encoderPool.info.digest}-${spaceDimensions}${mapVersion}`
    return { ...shape, task, contextTokens, embeddingSpace } satisfies LoadedModel<"embed">
  })
  const open: Partial<Record<TaskName, OpenEntry>> = {
    chat: openChat,
    embed: openEmbed,
    rerank: openRerank,
  }
  return <T extends TaskName>(request: OpenRequest<T>) =>
    (open[request.task]?.(request) ??
      Effect.fail(failed(`backend-onnx opens no ${request.task} models`))) as Effect.Effect<
      LoadedModel<T>,
      ApiError,
      Scope.Scope
    >
}
