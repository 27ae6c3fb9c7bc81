import { type ApiError, apiError } from "../../../core/errors.ts"
import type { ChatMessage, ChatRequest } from "../../../core/ports/model.ts"
import type { PromptMessage, PromptRequest } from "../chat-format/chat-prompt.ts"
import { callableTools } from "../output/grammar-for.ts"

const cant = (what: string, param: string): ApiError =>
  apiError("unsupported_parameter", `This model can't do ${what}.`, { param })

/** The first thing that a request asks for and can't have here. */
export const unsupportedIn = (request: ChatRequest): ApiError | undefined => {
  if (request.messages.some((message) => message.content.some((part) => part.type !== "text")))
    return cant("images or other media in messages", "messages")
  const { toolChoice, tools = [] } = request
  if (typeof toolChoice === "object" && !tools.some(({ name }) => name === toolChoice.name))
    return apiError(
      "invalid_request_error",
      `There is no tool '${toolChoice.name}' to be called.`,
      { param: "tool_choice" },
    )
  if (request.adapter) return cant("adapters", "lora")
  return undefined
}

/** The texts of a message as one, with the offsets at which blocks end that carry a cache marker. */
const joined = ({
  role,
  content,
  toolCalls,
  toolCallId,
  reasoning,
}: ChatMessage): PromptMessage => {
  const cacheBreakpoints: number[] = []
  let text = ""
  for (const [index, part] of content.entries()) {
    if (part.type !== "text") continue
    text += (index ? "\n" : "") + part.text
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

/** What the prompt is made of. Tools that can't be called are not shown. */
export const promptRequest = (request: ChatRequest): PromptRequest => ({
  messages: request.messages.map(joined),
  tools: callableTools(request).length
    ? (request.tools ?? []).map(({ name, description, parameters }) => ({
        name,
        ...(description !== undefined && { description }),
        ...(parameters !== undefined && { parameters }),
      }))
    : [],
  thinking: request.thinking === true,
})
