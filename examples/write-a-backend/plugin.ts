import { Effect, Schema } from "effect"
import {
  apiError,
  type Backend,
  definePlugin,
  type LoadedModel,
  type OpenRequest,
  provide,
  type TaskName,
  Tokens,
} from "rakit/core"
import { makeChatModel } from "./chat-model.ts"

/** `options` of a model in the config file. */
const Options = Schema.Struct({
  window: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThan(0))).annotate({
    description: "The window of this model, whatever more the config file promises.",
  }),
})

const openChat = ({ id, contextTokens, options }: OpenRequest): LoadedModel<"chat"> => {
  const { window = 100_000 } = Schema.decodeUnknownSync(Options)(options)
  const tokens = Math.min(contextTokens, window)
  return {
    task: makeChatModel(id, tokens),
    contextTokens: tokens,
    modalities: ["text"],
    capabilities: [],
    adapters: [],
    servedBy: "babble",
  }
}

export const backend: Backend = {
  name: "babble",
  tasks: ["chat"],
  check: (_, options) =>
    Schema.is(Options)(options) ? undefined : "they may name `window`, a whole number",
  open: <T extends TaskName>(request: OpenRequest<T>) =>
    request.task === "chat"
      ? Effect.sync(() => openChat(request) as LoadedModel as LoadedModel<T>)
      : Effect.fail(apiError("backend_error", `babble serves no model for ${request.task}.`)),
}

export const plugin = definePlugin({
  name: "backend-babble",
  api: 1,
  about: "A chat model that babbles: no weights, the same words for the same question.",
  settings: Schema.Struct({}),
  modelOptions: { babble: { chat: Options } },
  needs: [],
  provides: [Tokens.backends],
  create: () => ({ register: (container) => provide(container, Tokens.backends, backend) }),
})
