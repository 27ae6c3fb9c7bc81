import { Schema } from "effect"
import { atMostCharacters } from "../../core/characters.ts"
import { optional } from "../../core/decode.ts"

const CacheControl = Schema.Struct({ type: Schema.Literal("ephemeral") }).annotate({
  identifier: "CacheControl",
})

export const TextBlock = Schema.Struct({
  type: Schema.Literal("text"),
  text: Schema.String,
  cache_control: optional(CacheControl),
}).annotate({ identifier: "TextBlock" })

export const ImageBlock = Schema.Struct({
  type: Schema.Literal("image_url"),
  image_url: Schema.Struct({
    url: Schema.NonEmptyString,
    detail: optional(Schema.Literals(["auto", "low", "high"])),
  }),
  cache_control: optional(CacheControl),
}).annotate({ identifier: "ImageBlock", description: "`url` is a data URI or an https address." })

const VideoUrlBlock = Schema.Struct({
  type: Schema.Literal("video_url"),
  video_url: Schema.Struct({ url: Schema.NonEmptyString }),
  cache_control: optional(CacheControl),
}).annotate({
  identifier: "VideoUrlBlock",
  description: "`url` is a data URI or an https address.",
})

const InputVideoBlock = Schema.Struct({
  type: Schema.Literal("input_video"),
  input_video: Schema.Struct({
    url: optional(Schema.NonEmptyString),
    data: optional(Schema.NonEmptyString),
    format: optional(Schema.Literals(["mp4", "mov", "webm", "mkv"])),
  }).check(
    Schema.makeFilter(({ url, data }) =>
      (url == null) === (data == null) ? "must have `url` or `data`" : undefined,
    ),
  ),
  cache_control: optional(CacheControl),
}).annotate({
  identifier: "InputVideoBlock",
  description: "`url` is a data URI or an https address, `data` base64 or a data URI.",
})

export const AudioBlock = Schema.Struct({
  type: Schema.Literal("input_audio"),
  input_audio: Schema.Struct({
    data: Schema.NonEmptyString,
    format: Schema.Literals(["wav", "mp3"]),
  }),
  cache_control: optional(CacheControl),
}).annotate({ identifier: "InputAudioBlock", description: "`data` is base64, or a data URI." })

/** Models see some of a video's frames. */
export const VideoBlock = Schema.Union([VideoUrlBlock, InputVideoBlock])

const Blocks = Schema.Array(
  Schema.Union([TextBlock, ImageBlock, AudioBlock, VideoUrlBlock, InputVideoBlock]).annotate({
    message: "must be a block of type text, image_url, input_audio, video_url or input_video",
  }),
)
  .check(Schema.isMinLength(1, { message: "must hold at least one content block" }))
  .check(Schema.isMaxLength(1_000, { message: "must hold at most 1,000 content blocks" }))

// ids and names may come from another service, so they may have any form
const label = Schema.NonEmptyString.check(atMostCharacters(256))

const ToolCall = Schema.Struct({
  id: label,
  type: Schema.Literal("function"),
  function: Schema.Struct({
    name: label,
    arguments: Schema.String.check(atMostCharacters(1_000_000)).annotate({
      description: "JSON text",
    }),
  }),
}).annotate({ identifier: "ToolCall" })

const wellFormed = Schema.makeFilter(
  (message: {
    readonly role: string
    readonly content?: unknown
    readonly reasoning_content?: string | null
    readonly tool_calls?: readonly unknown[] | null
    readonly tool_call_id?: string | null
  }) => {
    const calls = (message.tool_calls ?? []).length > 0
    if (message.role === "tool" && message.tool_call_id == null)
      return { path: ["tool_call_id"], issue: "is required in a message of role 'tool'" }
    if (calls && message.role !== "assistant")
      return { path: ["tool_calls"], issue: "belongs to messages of role 'assistant'" }
    if (message.reasoning_content && message.role !== "assistant")
      return { path: ["reasoning_content"], issue: "belongs to messages of role 'assistant'" }
    if (message.content == null && !calls)
      return { path: ["content"], issue: "must be a string or an array of content blocks" }
    return undefined
  },
)

export const ChatMessage = Schema.Struct({
  role: Schema.Literals(["system", "developer", "user", "assistant", "tool"]).annotate({
    description: "`developer` is `system`.",
  }),
  content: optional(Schema.Union([Schema.String, Blocks])).annotate({
    description: "May be null only beside `tool_calls`.",
  }),
  reasoning_content: optional(Schema.String).annotate({
    description:
      "What an assistant thought; the model's template decides whether it is read again.",
  }),
  tool_calls: optional(
    Schema.Array(ToolCall).check(
      Schema.isMaxLength(128, { message: "must hold at most 128 calls" }),
    ),
  ),
  tool_call_id: optional(label).annotate({
    description: "The call that a message of role `tool` answers.",
  }),
})
  .check(wellFormed)
  .annotate({ identifier: "ChatMessage", examples: [{ role: "user", content: "Selamat pagi!" }] })
export type ChatMessage = typeof ChatMessage.Type
