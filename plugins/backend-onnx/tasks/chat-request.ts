import { type ApiError, apiError } from "../../../core/errors.ts"
import type { ChatMessage, ChatRequest } from "../../../core/ports/model.ts"
import type { PromptMessage, PromptRequest } from "../chat-format/chat-prompt.ts"
import type { PromptImages } from "../chat-format/prompt-images.ts"
import { callableTools } from "../output/grammar-for.ts"
import { hasMedia } from "./chat-media.ts"

const cant = (what: string, param: string): ApiError =>
  apiError("unsupported_parameter", `This model can't do ${what}.`, { param })

/** Returns the error for the first thing in the request that this backend can't do. */
export const unsupportedIn = (
  request: ChatRequest,
  adapters: readonly string[],
  seesImages: boolean,
): ApiError | undefined => {
  if (hasMedia(request) && !seesImages) return cant("images or other media in messages", "messages")
  const { toolChoice, tools = [] } = request
  if (typeof toolChoice === "object" && !tools.some(({ name }) => name === toolChoice.name))
    return apiError(
      "invalid_request_error",
      `There is no tool '${toolChoice.name}' to be called.`,
      { param: "tool_choice" },
    )
  const { responseFormat } = request
  const isText = ["regex", "choice", "grammar"].includes(responseFormat?.type ?? "")
  if (isText && callableTools(request).length)
    return cant(
      "calls of tools beside a pattern, a grammar or choices",
      responseFormat?.param ?? "tools",
    )
  const { adapter } = request
  if (adapter && !adapters.includes(adapter.id)) return cant(`adapter '${adapter.id}'`, "adapter")
  return undefined
}

/**
 * Joins the parts of a message, with `mark` in the place of an image, and the offsets at which
 * blocks with a cache breakpoint end. Lines divide texts, where no image does.
 */
const joined = (
  { role, content, toolCalls, toolCallId, reasoning }: ChatMessage,
  mark: string | undefined,
): PromptMessage => {
  const cacheBreakpoints: number[] = []
  let text = ""
  for (const [index, part] of content.entries()) {
    if (part.type !== "text" && mark === undefined) throw new Error("an image without a place")
    const isBehindText = part.type === "text" && content[index - 1]?.type === "text"
    text += (isBehindText ? "\n" : "") + (part.type === "text" ? part.text : mark)
    if (part.cacheBreakpoint) cacheBreakpoints.push(text.length)
  }
  return {
    role,
    content: text,
    ...(cacheBreakpoints.length && { cacheBreakpoints }),
    ...(toolCalls?.length && { toolCalls }),
    ...(toolCallId !== undefined && { toolCallId }),
    ...(reasoning !== undefined && { reasoning }),
  }
}

/** Returns the schema of the answer as text, if it has at most so many bytes. */
const schemaOf = ({ responseFormat }: ChatRequest, mostBytes: number): string | undefined => {
  if (mostBytes === 0 || responseFormat?.type !== "json_schema") return undefined
  const schema = JSON.stringify(responseFormat.schema)
  return Buffer.byteLength(schema) <= mostBytes ? schema : undefined
}

/**
 * Returns what the prompt is rendered from. Tools that must not be called are left out, and so is a
 * schema of more than so many bytes.
 */
export const promptRequest = (
  request: ChatRequest,
  {
    mostSchemaBytes,
    isSchemaAnnounced,
    images,
  }: {
    readonly mostSchemaBytes: number
    readonly isSchemaAnnounced: boolean
    readonly images?: PromptImages | undefined
  },
): PromptRequest => {
  const schema = schemaOf(request, mostSchemaBytes)
  return {
    messages: request.messages.map((message) => joined(message, images?.mark)),
    ...(images && { images }),
    ...(schema !== undefined && { schema: { text: schema, isAnnounced: isSchemaAnnounced } }),
    tools: callableTools(request).length
      ? (request.tools ?? []).map(({ name, description, parameters }) => ({
          name,
          ...(description !== undefined && { description }),
          ...(parameters !== undefined && { parameters }),
        }))
      : [],
    thinking: request.thinking === true,
  }
}
