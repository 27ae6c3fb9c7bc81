import type { Json } from "../../../core/json.ts"
import type { ChatMessage, ChatRequest, Part, ResponseFormat } from "../../../core/ports/model.ts"
import type { FormStyle, Kind } from "../kinds.ts"
import type { Upstream } from "../upstream/upstream.ts"
import { callableTools } from "./chat-wishes.ts"

const toBlock = (part: Part, caches: boolean): Json => ({
  ...(part.type === "text"
    ? { type: "text", text: part.text }
    : {
        type: "image_url",
        image_url: {
          url: `data:${part.mediaType};base64,${Buffer.from(part.bytes).toString("base64")}`,
          ...(part.detail && { detail: part.detail }),
        },
      }),
  ...(caches && part.cacheBreakpoint && { cache_control: { type: "ephemeral" } }),
})

const toContent = (content: readonly Part[], caches: boolean): Json => {
  const [first] = content
  if (!first) return ""
  const isPlain = content.length === 1 && first.type === "text"
  if (isPlain && !(caches && first.cacheBreakpoint)) return first.text
  return content.map((part) => toBlock(part, caches))
}

const toMessage = (caches: boolean) => (message: ChatMessage) => {
  const { role, content, toolCalls, toolCallId, reasoning } = message
  return {
    role,
    content: content.length === 0 && toolCalls?.length ? null : toContent(content, caches),
    ...(reasoning !== undefined && { reasoning_content: reasoning }),
    ...(toolCalls?.length && {
      tool_calls: toolCalls.map((call) => ({
        id: call.id,
        type: "function",
        function: { name: call.name, arguments: call.arguments },
      })),
    }),
    ...(toolCallId !== undefined && { tool_call_id: toolCallId }),
  }
}

const toSampling = ({ sampling }: ChatRequest, kind: Kind) => {
  const { temperature, topP, seed, frequencyPenalty, presencePenalty, logitBias } = sampling
  const { topK, minP, repetitionPenalty } = sampling
  return {
    ...kind.neutral,
    temperature,
    ...((kind.topP !== "nucleus" || topP < 1) && { top_p: topP }),
    ...(seed !== undefined && { seed }),
    ...(frequencyPenalty !== 0 && { frequency_penalty: frequencyPenalty }),
    ...(presencePenalty !== 0 && { presence_penalty: presencePenalty }),
    ...(topK !== undefined && { top_k: topK }),
    ...(minP !== undefined && { min_p: minP }),
    ...(repetitionPenalty !== undefined && {
      [kind.repetitionPenalty ?? "repetition_penalty"]: repetitionPenalty,
    }),
    ...(logitBias?.size && { logit_bias: Object.fromEntries(logitBias) }),
  }
}

const toTools = (request: ChatRequest, { forcesOneTool }: Kind) => {
  const { toolChoice, parallelToolCalls } = request
  const named = typeof toolChoice === "object" ? toolChoice.name : undefined
  const isOnly = forcesOneTool && named !== undefined
  const tools = callableTools(request).filter(({ name }) => !isOnly || name === named)
  if (tools.length === 0) return {}
  return {
    tools: tools.map(({ name, description, parameters, strict }) => ({
      type: "function",
      function: {
        name,
        ...(description !== undefined && { description }),
        ...(parameters !== undefined && { parameters }),
        ...(strict !== undefined && { strict }),
      },
    })),
    ...((toolChoice === "required" || isOnly) && { tool_choice: "required" }),
    ...(named !== undefined &&
      !isOnly && { tool_choice: { type: "function", function: { name: named } } }),
    ...(parallelToolCalls !== undefined && { parallel_tool_calls: parallelToolCalls }),
  }
}

/** A choice as a pattern. */
const alternatives = (choices: readonly string[]): string =>
  choices.map((choice) => choice.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&")).join("|")

/** A choice as a grammar of llama.cpp's GBNF, whose literals have JSON's escapes. */
const gbnf = (choices: readonly string[]): string =>
  `root ::= ${choices.map((choice) => JSON.stringify(choice)).join(" | ")}`

type Form<T extends ResponseFormat["type"]> = Extract<ResponseFormat, { readonly type: T }>

const toRegex = ({ pattern }: Form<"regex">, style: FormStyle | undefined): Json => {
  if (style === "rakit") return { response_format: { type: "regex", pattern } }
  if (style === "tgi") return { response_format: { type: "regex", value: pattern } }
  return style === "sglang" ? { regex: pattern } : { structured_outputs: { regex: pattern } }
}

const toChoice = ({ choices }: Form<"choice">, style: FormStyle | undefined): Json => {
  if (style === "sglang") return { regex: alternatives(choices) }
  return style === "llamacpp"
    ? { grammar: gbnf(choices) }
    : { structured_outputs: { choice: choices } }
}

const toSchema = ({ schema, strict }: Form<"json_schema">, style: FormStyle | undefined): Json =>
  style === "tgi"
    ? { response_format: { type: "json", value: schema } }
    : { response_format: { type: "json_schema", json_schema: { name: "answer", schema, strict } } }

/** The form of an answer in the words of the server; it was asked before whether it keeps it. */
const toForm = (format: ResponseFormat | undefined, { forms }: Kind): Json => {
  switch (format?.type) {
    case undefined:
      return {}
    case "json_object":
      return { response_format: { type: "json_object" } }
    case "json_schema":
      return toSchema(format, forms)
    case "regex":
      return toRegex(format, forms)
    case "grammar":
      return forms === "rakit"
        ? { response_format: { type: "grammar", grammar: format.lark } }
        : { structured_outputs: { grammar: format.lark } }
    case "choice":
      return toChoice(format, forms)
  }
}

/** Only another Rakit has it: in the format, or beside the schema. */
const closing = (form: Json, format: ResponseFormat | undefined): Json => {
  const { response_format } = form as { readonly response_format?: Record<string, Json> }
  if (!format?.closeOnLength || !response_format) return form
  const { json_schema } = response_format as { readonly json_schema?: Record<string, Json> }
  const closed = json_schema
    ? { ...response_format, json_schema: { ...json_schema, close_on_length: true } }
    : { ...response_format, close_on_length: true }
  return { response_format: closed }
}

/** The request as the upstream's kind takes it: all that it asks for, in the kind's own words. */
export const chatBody = (request: ChatRequest, upstream: Upstream, maxTokens: number): Json => {
  const { kind, options, features } = upstream
  const { answers = 1, stop, topLogprobs, messages, responseFormat } = request
  const continuous = kind.continuousUsage && { continuous_usage_stats: true }
  return {
    model: options.model,
    messages: messages.map(toMessage(features.has("cache_control"))),
    stream: true,
    stream_options: { include_usage: true, ...continuous },
    [kind.maxTokens]: maxTokens,
    ...toSampling(request, kind),
    ...(answers > 1 && { n: answers }),
    ...(stop.length > 0 && { stop }),
    ...(topLogprobs !== undefined && { logprobs: true, top_logprobs: topLogprobs }),
    ...(features.has("thinking") &&
      (request.thinking === true || options.kind !== "rakit") && {
        chat_template_kwargs: { enable_thinking: request.thinking === true },
      }),
    ...toTools(request, kind),
    ...(closing(toForm(responseFormat, kind), responseFormat) as object),
  }
}
