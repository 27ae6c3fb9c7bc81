import type { Json } from "../../core/json.ts"
import type {
  ChatEvent,
  ChatRequest,
  FinishReason,
  ToolDefinition,
} from "../../core/ports/model.ts"
import { fakeTokens } from "./model-run.ts"

/**
 * What a fake without a script says, as a model would: it calls its tools, fills a schema, thinks
 * first, or else says the last message again.
 */
export interface FakeSpeech {
  readonly first: readonly ChatEvent[]
  readonly says: readonly string[]
  readonly ends: FinishReason
}

type Fields = Readonly<Record<string, Json>>
const fieldsOf = (value: Json): Fields =>
  typeof value === "object" && value !== null ? (value as Fields) : {}

/** A document for a simple schema (types, enums, required fields); other keywords are ignored. */
export const sampleOf = (schema: Json): Json => {
  const {
    type,
    properties,
    required,
    items,
    minItems,
    minimum,
    enum: values,
    const: constant,
  } = fieldsOf(schema)
  if (constant !== undefined) return constant
  if (Array.isArray(values)) return values[0]
  const kind = Array.isArray(type) ? type[0] : (type ?? "object")
  switch (kind) {
    case "object":
      return Object.fromEntries(
        ((required as string[] | undefined) ?? []).map((name) => [
          name,
          sampleOf(fieldsOf(properties)[name]),
        ]),
      )
    case "array":
      return Array.from({ length: (minItems as number | undefined) ?? 1 }, () => sampleOf(items))
    case "string":
      return "sample"
    case "boolean":
      return true
    default:
      return kind === "null" ? null : ((minimum as number | undefined) ?? 1)
  }
}

export const textOf = (message: ChatRequest["messages"][number] | undefined): string =>
  (message?.content ?? [])
    .map((part) => (part.type === "text" ? part.text : ` [${part.mediaType}]`))
    .join("")

/** Splits text into pieces that cut words, as tokens do. */
const pieces = (text: string): readonly string[] => text.match(/[\s\S]{1,3}/gu) ?? []

const callOf = (tool: ToolDefinition, index: number, id: string): readonly ChatEvent[] => [
  { type: "toolCall", index, id, name: tool.name, argumentsDelta: "" },
  ...pieces(JSON.stringify(sampleOf(tool.parameters))).map(
    (argumentsDelta): ChatEvent => ({ type: "toolCall", index, argumentsDelta }),
  ),
]

/** `auto` calls until there is a result, so that a conversation ends. */
const calledTools = ({
  tools = [],
  toolChoice = "auto",
  allowedTools,
  parallelToolCalls = true,
  messages,
}: ChatRequest): readonly ToolDefinition[] => {
  if (toolChoice === "none" || (toolChoice === "auto" && messages.at(-1)?.role === "tool"))
    return []
  if (typeof toolChoice === "object") return tools.filter((tool) => tool.name === toolChoice.name)
  const allowed = allowedTools ? tools.filter(({ name }) => allowedTools.includes(name)) : tools
  return parallelToolCalls ? allowed : allowed.slice(0, 1)
}

export const speak = (request: ChatRequest): FakeSpeech => {
  const { messages, responseFormat, thinking } = request
  const thoughts = thinking
    ? ["Let", " me", " think."].map((text): ChatEvent => ({ type: "reasoning", text }))
    : []
  const calls = calledTools(request).flatMap((tool, index) =>
    callOf(tool, index, `call_${messages.length}_${index}`),
  )
  if (calls.length > 0) return { first: [...thoughts, ...calls], says: [], ends: "tool_calls" }
  const schema = responseFormat?.type === "json_schema" ? responseFormat.schema : {}
  if (responseFormat?.type === "choice")
    return { first: thoughts, says: pieces(responseFormat.choices[0] ?? ""), ends: "stop" }
  return {
    first: thoughts,
    says: responseFormat
      ? pieces(JSON.stringify(sampleOf(schema)))
      : fakeTokens(textOf(messages.at(-1))),
    ends: "stop",
  }
}
