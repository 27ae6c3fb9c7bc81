import { Schema } from "effect"
import { atMostCharacters } from "../../core/characters.ts"
import { optional } from "../../core/decode.ts"
import { conversationProblem } from "./conversation.ts"
import { ChatMessage } from "./message-schema.ts"
import { ResponseFormat } from "./response-format.ts"
import { formatProblem, structuredOutputFields } from "./structured-output.ts"
import { ToolChoice, Tools, toolsProblem } from "./tool-schema.ts"

const between = (minimum: number, maximum: number) => Schema.isBetween({ minimum, maximum })
const atLeastOne = Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))

const stopText = Schema.String.check(Schema.isMinLength(1, { message: "must not be empty" })).check(
  atMostCharacters(1_000),
)

// a check in the Record's key schema would silently drop the keys that fail it
const keys = (fits: RegExp, why: string, most: number) =>
  Schema.makeFilter((value: object) => {
    const names = Object.keys(value)
    if (names.length > most) return `must have at most ${most} keys`
    const wrong = names.find((key) => !fits.test(key))
    return wrong === undefined ? undefined : { path: [wrong.slice(0, 64)], issue: why }
  })

const LogitBias = Schema.Record(Schema.String, Schema.Finite.check(between(-100, 100))).check(
  keys(/^(0|[1-9]\d{0,6})$/, "the key must be a token id", 1_024),
)
const Metadata = Schema.Record(Schema.String, Schema.String.check(atMostCharacters(512))).check(
  keys(/^[\s\S]{1,64}$/u, "the key must have 1 to 64 characters", 16),
)

const AdapterId = Schema.NonEmptyString.check(atMostCharacters(64))
const AdapterChoice = Schema.Struct({
  id: AdapterId,
  strength: optional(Schema.Finite.check(between(0, 2))).annotate({
    description: "How much of it is added; 1: as it was trained.",
    default: 1,
  }),
}).annotate({ identifier: "AdapterChoice" })

const Fields = Schema.Struct({
  model: Schema.NonEmptyString,
  messages: Schema.Array(ChatMessage)
    .check(Schema.isMinLength(1, { message: "must hold at least one message" }))
    .check(Schema.isMaxLength(2_000, { message: "must hold at most 2,000 messages" })),
  max_tokens: optional(atLeastOne).annotate({
    description: "Default and maximum depend on the model.",
  }),
  max_completion_tokens: optional(atLeastOne).annotate({
    description: "The newer name of `max_tokens`.",
  }),
  temperature: optional(Schema.Finite.check(between(0, 2))).annotate({ default: 1 }),
  top_p: optional(Schema.Finite.check(between(0, 1))).annotate({ default: 1 }),
  n: optional(Schema.Int.check(between(1, 8))).annotate({
    description:
      "How many answers to write: the prompt is read and charged once, `max_tokens` holds for each.",
    default: 1,
  }),
  stream: optional(Schema.Boolean).annotate({ default: false }),
  stream_options: optional(Schema.Struct({ include_usage: optional(Schema.Boolean) })),
  stop: optional(
    Schema.Union([
      stopText,
      Schema.Array(stopText).check(
        Schema.isMaxLength(4, { message: "must hold at most 4 stop sequences" }),
      ),
    ]),
  ),
  seed: optional(Schema.Int),
  top_k: optional(Schema.Int.check(between(-1, 1_000_000))).annotate({
    description: "Only so many of the likeliest tokens; 0 or -1: all.",
    default: -1,
  }),
  min_p: optional(Schema.Finite.check(between(0, 1))).annotate({
    description: "Only tokens with at least this part of the likeliest one's probability.",
    default: 0,
  }),
  repetition_penalty: optional(Schema.Finite.check(between(0.1, 10))).annotate({
    description: "Above 1, tokens of the prompt and the answer become less likely.",
    default: 1,
  }),
  frequency_penalty: optional(Schema.Finite.check(between(-2, 2))).annotate({ default: 0 }),
  presence_penalty: optional(Schema.Finite.check(between(-2, 2))).annotate({ default: 0 }),
  logit_bias: optional(LogitBias).annotate({ description: "Token id -> -100 to 100." }),
  logprobs: optional(Schema.Boolean),
  top_logprobs: optional(Schema.Int.check(between(0, 20))),
  tools: optional(Tools),
  tool_choice: optional(ToolChoice),
  parallel_tool_calls: optional(Schema.Boolean).annotate({
    description: "False: at most one call in an answer.",
    default: true,
  }),
  response_format: optional(ResponseFormat),
  chat_template_kwargs: optional(
    Schema.Struct({
      enable_thinking: optional(Schema.Boolean).annotate({
        description: "Thinks first, into `reasoning_content`.",
        default: false,
      }),
    }),
  ),
  ...structuredOutputFields,
  adapter: optional(Schema.Union([AdapterId, AdapterChoice])).annotate({
    description:
      "A LoRA of the model, as the model `<model>:<adapter>` names it; none: the model alone.",
  }),
  user: optional(Schema.String.check(atMostCharacters(512))),
  metadata: optional(Metadata),
})

const consistent = Schema.makeFilter((body: typeof Fields.Type) => {
  if (
    body.max_tokens != null &&
    body.max_completion_tokens != null &&
    body.max_tokens !== body.max_completion_tokens
  )
    return { path: ["max_completion_tokens"], issue: "must equal max_tokens where both are given" }
  if (body.stream_options != null && body.stream !== true)
    return { path: ["stream_options"], issue: "is only allowed when stream is true" }
  if ((body.top_logprobs ?? 0) > 0 && body.logprobs !== true)
    return { path: ["top_logprobs"], issue: "is only allowed when logprobs is true" }
  return toolsProblem(body) ?? formatProblem(body) ?? conversationProblem(body.messages)
})

const question = [{ role: "user", content: "What is the weather in Jakarta?" }] as const
const city = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
}

const chatExamples = [
  { model: "svc-lyt", messages: [{ role: "user", content: "Selamat pagi!" }] },
  {
    model: "svc-lyt",
    messages: question,
    stream: true,
    stream_options: { include_usage: true },
  },
  {
    model: "svc-lyt",
    messages: question,
    tools: [{ type: "function", function: { name: "get_weather", parameters: city } }],
    tool_choice: "required",
  },
  {
    model: "svc-lyt",
    messages: question,
    response_format: {
      type: "json_schema",
      json_schema: { name: "city", schema: city, strict: true },
    },
  },
] as const

/**
 * The body of `POST /v1/chat/completions`. An explicit null counts as absent; unknown fields are
 * ignored, but for those of refused-fields.ts.
 */
export const ChatBody = Fields.annotate({ examples: chatExamples })
  .check(consistent)
  .annotate({ identifier: "ChatCompletionRequest" })
export type ChatBody = typeof ChatBody.Type
