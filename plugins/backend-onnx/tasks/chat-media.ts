import { createHash } from "node:crypto"
import type { Effect } from "effect"
import { type ApiError, apiError } from "../../../core/errors.ts"
import type { ChatMessage, ChatRequest, ModelContext } from "../../../core/ports/model.ts"
import { unusedCharacter } from "../chat-format/control-guard.ts"
import type { PromptImages } from "../chat-format/prompt-images.ts"
import type { EncodedImage } from "./encoded-images.ts"

export type Grid = Pick<EncodedImage, "rows" | "columns">

/** The images or sounds of a request, read and not yet encoded. */
export interface ReadMedia {
  readonly prompt: PromptImages
  readonly tokens: number
  /** Returns what the decoder reads of them, in their order. */
  readonly encoded: Effect.Effect<readonly Float32Array[], ApiError>
  /** Seconds of sounds. */
  readonly seconds?: number
  /** Digest of what they are encoded by. */
  readonly digest: string
  /** Rows and columns of the tokens of each; absent: the model knows tokens one after the other. */
  readonly grids?: readonly Grid[]
}

/** By which a model sees or hears: reads the media of a request, before it is run. */
export interface ChatMedia {
  read(request: ChatRequest, context: ModelContext): Effect.Effect<ReadMedia, ApiError>
}

export type Media = Extract<ChatMessage["content"][number], { readonly type: "media" }>

/** The media of a request with their paths; `field`: where a block has its file. */
export const mediaIn = ({ messages }: ChatRequest, field: string) =>
  messages.flatMap(({ content }, m) =>
    content.flatMap((part, p) =>
      part.type === "media" ? [{ part, param: `messages[${m}].content[${p}].${field}` }] : [],
    ),
  )

export const hasMedia = (request: ChatRequest): boolean =>
  request.messages.some(({ content }) => content.some(({ type }) => type === "media"))

/**
 * Numbers below 0 in place of an image's or sound's tokens, drawn from its digest: the prefix cache then finds
 * the same one again, and no other.
 */
export const idsOf = (digest: Buffer, count: number): Int32Array => {
  const bytes = createHash("shake256", { outputLength: 4 * count })
    .update(digest)
    .digest()
  return Int32Array.from({ length: count }, (_, at) => -1 - (bytes.readUInt32LE(4 * at) >>> 1))
}

const textsIn = ({ messages, tools = [] }: ChatRequest): readonly string[] => [
  JSON.stringify([
    tools,
    messages.map(({ content, ...rest }) => [
      content.map((part) => (part.type === "text" ? part.text : "")),
      rest,
    ]),
  ]),
]

/** A character that no text of the request has; it stands for each of the media. */
export const markOf = (request: ChatRequest): string | ApiError =>
  unusedCharacter(textsIn(request)) ??
  apiError("invalid_request_error", "Every private-use character is used.", { param: "messages" })
