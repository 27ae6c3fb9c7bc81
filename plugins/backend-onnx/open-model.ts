import { realpath } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Schema, type Scope } from "effect"
import { type ApiError, apiError } from "../../core/errors.ts"
import type { LoadedModel, OpenRequest, TaskName } from "../../core/ports/model.ts"
import type { Clock } from "../../core/services/clock.ts"
import type { Log } from "../../core/services/log.ts"
import type { Workers } from "../../core/services/workers.ts"
import { makeChatModel } from "./chat/chat-model.ts"
import { type Engine, startEngine } from "./engine/engine-host.ts"
import type { LlamaEvent, LlamaInfo, LlamaRequest } from "./engine/llama-jobs.ts"
import type { EngineSpec } from "./engine/protocol.ts"
import { makeShared } from "./engine/shared.ts"
import { entryOptions } from "./options.ts"
import type { OnnxSettings } from "./settings.ts"

/** What the backend is made of; `services` is called when the first model is opened. */
export interface OnnxParts {
  readonly settings: OnnxSettings
  services(): { readonly dataDir: string; readonly workers: Workers; readonly clock: Clock; readonly log: Log }
}

const failed = (message: string): ApiError => apiError("backend_error", message)

const optionsOf = <A>(schema: Schema.Codec<A, unknown>, request: OpenRequest): Effect.Effect<A, ApiError> =>
  Effect.mapError(Schema.decodeUnknownEffect(schema)(request.options ?? {}), (error) => failed(`The options of the model '${request.id}' are wrong: ${error.message}`))

/** One engine for each model file and precision, whatever number of entries points to it. */
const makeEngines = ({ settings, services }: OnnxParts) => {
  const shared = makeShared<Engine<never, unknown, unknown>, ApiError>()
  return <Job, Event, Info>(kind: EngineSpec["kind"], precision: EngineSpec["precision"], request: OpenRequest): Effect.Effect<Engine<Job, Event, Info>, ApiError, Scope.Scope> =>
    Effect.gen(function* () {
      const { dataDir, log } = services()
      const path = yield* Effect.tryPromise({ try: () => realpath(request.path), catch: (cause) => failed(`${request.path}: can't be read (${(cause as Error).message})`) })
      const { threads, slots, queue } = settings
      const spec: EngineSpec = { kind, path, precision, graphs: join(dataDir, "graphs"), threads, slots }
      const open = startEngine<Job, Event, Info>({ spec, queue, log, progress: (detail) => request.progress(detail) })
      const engine = yield* shared.get(`${kind} ${precision} ${path}`, open as unknown as Effect.Effect<Engine<never, unknown, unknown>, ApiError, Scope.Scope>)
      return engine as unknown as Engine<Job, Event, Info>
    })
}

export const openModel = (parts: OnnxParts) => {
  const engineOf = makeEngines(parts)
  const openChat = Effect.fnUntraced(function* (request: OpenRequest) {
    const { precision } = yield* optionsOf(entryOptions.chat, request)
    const engine = yield* engineOf<LlamaRequest, LlamaEvent, LlamaInfo>("llama", precision, request)
    const contextTokens = Math.min(request.contextTokens, engine.info.contextTokens)
    const task = makeChatModel({ id: request.id, engine, contextTokens, ...parts.services() })
    const model: LoadedModel<"chat"> = { task, contextTokens, modalities: ["text"], adapters: [], servedBy: "onnx cpu" }
    return model
  })
  return <T extends TaskName>(request: OpenRequest<T>): Effect.Effect<LoadedModel<T>, ApiError, Scope.Scope> => {
    const open = { chat: openChat }[request.task as "chat"]
    return (open ? open(request) : Effect.fail(failed(`backend-onnx opens no ${request.task} models`))) as Effect.Effect<LoadedModel<T>, ApiError, Scope.Scope>
  }
}
