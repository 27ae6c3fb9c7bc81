import { type ApiError, apiError } from "../../../core/errors.ts"
import type { ChatMessage, ChatRequest } from "../../../core/ports/model.ts"
import type { PromptMessage, PromptRequest } from "../chat-format/chat-prompt.ts"
import { callableTools } from "../output/grammar-for.ts"

const cant = (what: string, param: string): ApiError =>
  apiError("unsupported_parameter", `This model can't do ${what}.`, { param })

/** Returns the error for the first thing in the request that this backend can't do. */
export const unsupportedIn = (
  request: ChatRequest,
  adapters: readonly string[],
): ApiError | undefined => {
  if (request.messages.some((message) => message.content.some((part) => part.type !== "text")))
    return cant("images or other media in messages", "messages")
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

/** Joins the texts of a message, with the offsets at which blocks with a cache breakpoint end. */
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
  }: { readonly mostSchemaBytes: number; readonly isSchemaAnnounced: boolean },
): PromptRequest => {
  const schema = schemaOf(request, mostSchemaBytes)
  return {
    messages: request.messages.map(joined),
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
