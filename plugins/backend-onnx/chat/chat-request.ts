import { type ApiError, apiError } from "../../../core/errors.ts"
import type { ChatMessage, ChatRequest } from "../../../core/ports/model.ts"
import type { PromptMessage } from "../tokenizer/chat-prompt.ts"

const cant = (what: string, param: string): ApiError => apiError("unsupported_parameter", `This model can't do ${what}.`, { param })

const usesTools = (message: ChatMessage): boolean => message.role === "tool" || (message.toolCalls?.length ?? 0) > 0 || message.toolCallId !== undefined

/** The first thing that a request asks for and this backend can't do. */
export const unsupportedIn = (request: ChatRequest): ApiError | undefined => {
  if (request.tools?.length) return cant("tools", "tools")
  if (request.messages.some(usesTools)) return cant("tool calls and their results", "messages")
  if (request.messages.some((message) => message.content.some((part) => part.type !== "text"))) return cant("images or other media in messages", "messages")
  if (request.responseFormat) return cant("structured output", "response_format")
  if (request.thinking) return cant("thinking", "chat_template_kwargs")
  if (request.adapter) return cant("adapters", "lora")
  return undefined
}

/** The texts of a message as one, with the offsets at which blocks end that carry a cache marker. */
const joined = ({ role, content }: ChatMessage): PromptMessage => {
  const marks: number[] = []
  let text = ""
  for (const [index, part] of content.entries()) {
    if (part.type !== "text") continue
    text += (index ? "\n" : "") + part.text
    if (part.cacheBreakpoint) marks.push(text.length)
  }
  return { role, content: text, ...(marks.length && { marks }) }
}

export const promptMessages = (messages: readonly ChatMessage[]): readonly PromptMessage[] => messages.map(joined)
