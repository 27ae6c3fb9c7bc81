import { Schema } from "effect"

const count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const FinishReason = Schema.Literals(["stop", "length", "tool_calls", "content_filter"])

export const ChatUsage = Schema.Struct({
  prompt_tokens: count.annotate({ description: "Includes the cached ones." }),
  completion_tokens: count.annotate({ description: "Includes reasoning." }),
  total_tokens: count,
  cache_creation_input_tokens: count,
  cache_read_input_tokens: count,
  prompt_tokens_details: Schema.Struct({
    cached_tokens: count,
    image_tokens: Schema.optionalKey(count).pipe(
      Schema.annotateKey({ description: "Of prompts with images; part of `prompt_tokens`." }),
    ),
    audio_tokens: Schema.optionalKey(count).pipe(
      Schema.annotateKey({ description: "Of prompts with sounds; part of `prompt_tokens`." }),
    ),
    video_frames: Schema.optionalKey(count).pipe(
      Schema.annotateKey({
        description: "Of prompts with videos; their tokens are part of `image_tokens`.",
      }),
    ),
  }),
  completion_tokens_details: Schema.Struct({ reasoning_tokens: count }),
  cost_idr: Schema.Finite.annotate({ description: "What the call cost, in rupiah." }),
}).annotate({ identifier: "ChatUsage" })
export type ChatUsage = typeof ChatUsage.Type

const documentComplete = Schema.optionalKey(Schema.Boolean).pipe(
  Schema.annotateKey({
    description:
      "Of answers with `close_on_length`: whether `content` is a whole document. False where no end fitted into `max_tokens`.",
  }),
)

const plain = { token: Schema.String, logprob: Schema.Finite, bytes: Schema.Array(count) }
const Logprobs = Schema.Struct({
  content: Schema.Array(
    Schema.Struct({ ...plain, top_logprobs: Schema.Array(Schema.Struct(plain)) }),
  ),
}).annotate({ identifier: "Logprobs" })
export type Logprobs = typeof Logprobs.Type

const AnsweredCall = Schema.Struct({
  id: Schema.String,
  type: Schema.Literal("function"),
  function: Schema.Struct({ name: Schema.String, arguments: Schema.String }),
}).annotate({ identifier: "AnsweredToolCall" })
export type AnsweredCall = typeof AnsweredCall.Type

const CallDelta = Schema.Struct({
  index: count,
  id: Schema.optionalKey(Schema.String),
  type: Schema.optionalKey(Schema.Literal("function")),
  function: Schema.Struct({ name: Schema.optionalKey(Schema.String), arguments: Schema.String }),
}).annotate({ identifier: "ToolCallDelta" })

export const ChatCompletion = Schema.Struct({
  id: Schema.String.annotate({ description: "`chatcmpl-...`" }),
  object: Schema.Literal("chat.completion"),
  created: count,
  model: Schema.String,
  choices: Schema.Array(
    Schema.Struct({
      index: count,
      message: Schema.Struct({
        role: Schema.Literal("assistant"),
        content: Schema.NullOr(Schema.String),
        reasoning_content: Schema.optionalKey(Schema.String),
        tool_calls: Schema.optionalKey(Schema.Array(AnsweredCall)),
      }),
      logprobs: Schema.optionalKey(Logprobs),
      finish_reason: FinishReason,
      document_complete: documentComplete,
    }),
  ),
  usage: ChatUsage,
}).annotate({ identifier: "ChatCompletion" })
export type ChatCompletion = typeof ChatCompletion.Type

const Delta = Schema.Struct({
  role: Schema.optionalKey(Schema.Literal("assistant")),
  content: Schema.optionalKey(Schema.String),
  reasoning_content: Schema.optionalKey(Schema.String),
  tool_calls: Schema.optionalKey(Schema.Array(CallDelta)),
}).annotate({ identifier: "ChatDelta" })
export type Delta = typeof Delta.Type

export const ChatChunk = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("chat.completion.chunk"),
  created: count,
  model: Schema.String,
  choices: Schema.Array(
    Schema.Struct({
      index: count,
      delta: Delta,
      logprobs: Schema.optionalKey(Logprobs),
      finish_reason: Schema.NullOr(FinishReason),
      document_complete: documentComplete,
    }),
  ).annotate({
    description: "Empty in the chunk that carries `usage`.",
  }),
  usage: Schema.optionalKey(ChatUsage).pipe(
    Schema.annotateKey({
      description: "In the last chunk, when `stream_options.include_usage` is true.",
    }),
  ),
}).annotate({ identifier: "ChatCompletionChunk" })
export type ChatChunk = typeof ChatChunk.Type
