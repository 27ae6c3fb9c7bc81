import { Effect, Schema } from "effect"
import { apiError } from "../../core/errors.ts"
import { definePlugin } from "../../core/plugin.ts"
import type { Backend, LoadedModel, OpenRequest, TaskName } from "../../core/ports/model.ts"
import { provide, Tokens } from "../../core/tokens.ts"
import { fakeChatModel } from "./chat-model.ts"
import { fakeEmbedModel } from "./embed-model.ts"
import { fakeImageModel } from "./image-model.ts"
import { fakeRerankModel } from "./rerank-model.ts"
import { fakeTranscribeModel } from "./transcribe-model.ts"

/**
 * `broken`: the model can't be opened. `stepMs`: how long each token takes. `atOnce`: the whole
 * answer in one step. `window`: the model's own window, which may be smaller than the promised one.
 * `dimensions`: the length of embeddings, 2048 by default. `recommendedTemperature`: of a chat model.
 */
const Options = Schema.Struct({
  broken: Schema.optionalKey(Schema.String),
  stepMs: Schema.optionalKey(Schema.Finite),
  atOnce: Schema.optionalKey(Schema.Boolean),
  window: Schema.optionalKey(Schema.Int),
  dimensions: Schema.optionalKey(Schema.Int),
  recommendedTemperature: Schema.optionalKey(Schema.Finite),
})

const modelOf = ({
  id,
  task,
  contextTokens: promised,
  options,
}: Omit<OpenRequest, "progress">): LoadedModel => {
  const {
    stepMs = 0,
    atOnce = false,
    window = promised,
    dimensions,
    recommendedTemperature: temperature,
  } = options as typeof Options.Type
  const contextTokens = Math.min(promised, window)
  const pace = {
    entry: { id, contextTokens },
    forgets: true as const,
    atOnce,
    ...(stepMs > 0 && { before: () => Effect.sleep(stepMs) }),
  }
  const entry = { ...pace.entry, modalities: ["text", "image"] }
  if (task === "chat") {
    const { loaded } = fakeChatModel({ ...pace, entry })
    return temperature === undefined
      ? loaded
      : { ...loaded, advisedSampling: { temperature, source: "config" } }
  }
  if (task === "transcribe") return fakeTranscribeModel(pace).loaded as LoadedModel
  if (task === "image") return fakeImageModel(pace).loaded as LoadedModel
  return (
    task === "embed"
      ? fakeEmbedModel({ ...pace, entry, ...(dimensions !== undefined && { dimensions }) }).loaded
      : fakeRerankModel(pace).loaded
  ) as LoadedModel
}

const backend: Backend = {
  name: "fake",
  tasks: ["chat", "embed", "rerank", "image", "transcribe"],
  check: (_, options) =>
    Schema.is(Options)(options) ? undefined : "they are not those of the fake backend",
  describe: (request) => Effect.sync(() => modelOf(request)),
  open: <T extends TaskName>(request: OpenRequest<T>) => {
    const { broken } = request.options as typeof Options.Type
    if (broken !== undefined) return Effect.fail(apiError("backend_error", broken))
    return Effect.succeed(modelOf(request) as LoadedModel<T>)
  },
}

/** A plugin that serves the fake models of `rakit/testing`: `rakit/testing/backend`. */
export const plugin = definePlugin({
  name: "backend-fake",
  api: 1,
  about: "Deterministic models without weights, for tests and benchmarks.",
  settings: Schema.Struct({}),
  needs: [],
  provides: [Tokens.backends],
  create: () => ({ register: (container) => provide(container, Tokens.backends, backend) }),
})
