import { Effect, Schema, Stream } from "effect"
import {
  type ApiError,
  type Catalogue,
  type ChatEvent,
  defineEndpoint,
  definePlugin,
  megabyte,
  provide,
  resolve,
  Tokens,
} from "rakit/core"

/** What the operator may set under `plugins` in the config file. */
const Settings = Schema.Struct({
  model: Schema.String.annotate({ description: "The chat model that summarizes." }),
  maxWords: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 500 })).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(50)),
  ),
})

const Body = Schema.Struct({
  text: Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(20_000)),
})

const instructions = (maxWords: number) => `Summarize the user's text in at most ${maxWords} words.`

const collectText = (events: Stream.Stream<ChatEvent, ApiError>) =>
  Stream.runFold(
    events,
    () => "",
    (text, event) => (event.type === "text" ? text + event.text : text),
  )

/**
 * POST /v1/summaries: decode -> ask a port -> encode. Limits, holds, settlement, errors and docs
 * come from the kernel.
 */
const makeSummariesEndpoint = (catalogue: Catalogue, { model, maxWords }: typeof Settings.Type) =>
  defineEndpoint({
    id: "summaries",
    summary: "Summarizes a text.",
    method: "POST",
    path: "/v1/summaries",
    access: "key",
    body: Body,
    maxBodyBytes: megabyte,
    creates: true,
    batchable: true,
    plan: (call) =>
      Effect.gen(function* () {
        const chat = yield* catalogue.open("chat", model)
        const planned = yield* chat.task.plan(
          {
            messages: [
              { role: "system", content: [{ type: "text", text: instructions(maxWords) }] },
              { role: "user", content: [{ type: "text", text: call.body.text }] },
            ],
            sampling: { temperature: 0, topP: 1, frequencyPenalty: 0, presencePenalty: 0 },
            maxTokens: maxWords * 2,
            stop: [],
          },
          call.context,
        )
        const run = collectText(planned.run).pipe(
          Effect.map((summary) => ({ status: 200, json: { object: "summary", model, summary } })),
        )
        return { bound: { [model]: planned.bound }, run }
      }),
  })

export const plugin = definePlugin<typeof Settings.Type>({
  name: "endpoint-summaries",
  api: 1,
  about: "POST /v1/summaries",
  settings: Settings,
  needs: [Tokens.catalogue],
  provides: [Tokens.endpoints],
  create: (settings) => ({
    register: (container) =>
      provide(
        container,
        Tokens.endpoints,
        makeSummariesEndpoint(resolve(container, Tokens.catalogue), settings),
      ),
  }),
})
