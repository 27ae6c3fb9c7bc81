import type {
  Adapter,
  ChatRequest,
  ChatMessage as Message,
  Part,
  Sampling,
  ToolDefinition,
} from "../../core/ports/model.ts"
import type { Media } from "./media.ts"
import type { ChatMessage } from "./message-schema.ts"
import type { ChatBody } from "./request-schema.ts"
import { askedFormat } from "./response-format.ts"
import { formatsOf } from "./structured-output.ts"

const toParts = (content: ChatMessage["content"], media: Media): readonly Part[] => {
  if (content == null) return []
  if (typeof content === "string") return [{ type: "text", text: content }]
  return content.flatMap((block): readonly Part[] => {
    if (block.type === "text")
      return [
        {
          type: "text",
          text: block.text,
          ...(block.cache_control && { cacheBreakpoint: true }),
        },
      ]
    const parts = media.get(block)
    if (!parts) throw new Error("a block was not read")
    return parts
  })
}

const toMessage = (message: ChatMessage, media: Media): Message => ({
  role: message.role === "developer" ? "system" : message.role,
  content: toParts(message.content, media),
  ...(message.tool_calls?.length && {
    toolCalls: message.tool_calls.map((call) => ({
      id: call.id,
      name: call.function.name,
      arguments: call.function.arguments,
    })),
  }),
  ...(message.reasoning_content && { reasoning: message.reasoning_content }),
  ...(message.role === "tool" &&
    message.tool_call_id != null && { toolCallId: message.tool_call_id }),
})

const toSampling = (body: ChatBody): Sampling => ({
  temperature: body.temperature ?? 1,
  topP: body.top_p ?? 1,
  frequencyPenalty: body.frequency_penalty ?? 0,
  presencePenalty: body.presence_penalty ?? 0,
  ...(body.seed != null && { seed: body.seed }),
  ...((body.top_k ?? 0) > 0 && { topK: body.top_k ?? 0 }),
  ...((body.min_p ?? 0) > 0 && { minP: body.min_p ?? 0 }),
  ...((body.repetition_penalty ?? 1) !== 1 && { repetitionPenalty: body.repetition_penalty ?? 1 }),
  ...(body.logit_bias != null && {
    logitBias: new Map(
      Object.entries(body.logit_bias).map(([token, bias]) => [Number(token), bias]),
    ),
  }),
})

const toStop = (stop: ChatBody["stop"]): readonly string[] => {
  if (stop == null) return []
  return typeof stop === "string" ? [stop] : stop
}

type Tool = NonNullable<ChatBody["tools"]>[number]

const toTool = ({ function: { name, description, parameters, strict } }: Tool): ToolDefinition => ({
  name,
  ...(description != null && { description }),
  ...(parameters != null && { parameters }),
  ...(strict != null && { strict }),
})

type Choice = Pick<ChatRequest, "toolChoice" | "allowedTools">

const toChoice = (choice: ChatBody["tool_choice"]): Choice => {
  if (choice == null) return { toolChoice: "auto" }
  if (typeof choice === "string") return { toolChoice: choice }
  if (choice.type === "function") return { toolChoice: { name: choice.function.name } }
  const { mode, tools } = choice.allowed_tools
  return { toolChoice: mode, allowedTools: tools.map((tool) => tool.function.name) }
}

const toTools = (
  body: ChatBody,
): Pick<ChatRequest, "tools" | "toolChoice" | "allowedTools" | "parallelToolCalls"> => {
  if (!body.tools?.length) return {}
  const parallel = body.parallel_tool_calls
  return {
    tools: body.tools.map(toTool),
    ...toChoice(body.tool_choice),
    ...(parallel != null && { parallelToolCalls: parallel }),
  }
}

const toFormat = (body: ChatBody): Pick<ChatRequest, "responseFormat"> => {
  const [other] = formatsOf(body)
  const responseFormat = askedFormat(body.response_format) ?? other
  return responseFormat ? { responseFormat } : {}
}

/** What a request's fields come to beside the body. */
export interface RequestParts {
  readonly maxTokens: number
  readonly adapter?: Adapter | undefined
  /** By the image blocks of the body, each of which has one. */
  readonly media: Media
}

/** Translates the request's fields to the Model port. */
export const toRequest = (
  body: ChatBody,
  { maxTokens, adapter, media }: RequestParts,
): ChatRequest => ({
  messages: body.messages.map((message) => toMessage(message, media)),
  sampling: toSampling(body),
  maxTokens,
  ...((body.n ?? 1) > 1 && { answers: body.n ?? 1 }),
  stop: toStop(body.stop),
  ...(body.logprobs === true && { topLogprobs: body.top_logprobs ?? 0 }),
  ...(body.chat_template_kwargs?.enable_thinking != null && {
    thinking: body.chat_template_kwargs.enable_thinking,
  }),
  ...toTools(body),
  ...toFormat(body),
  ...(adapter && { adapter }),
})
