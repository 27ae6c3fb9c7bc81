import { createHash } from "node:crypto"
import type { Json } from "../../../core/json.ts"
import { parseAsWritten } from "../tokenizer/written-number.ts"
import { type SyntaxName, syntaxes, writeCalls } from "./call-syntax.ts"
import { announcement, type PromptTool, phiTools } from "./chat-prompt-tools.ts"
import type { TemplateStyle } from "./template-style.ts"

export interface PromptCall {
  readonly id: string
  readonly name: string
  /** JSON text. */
  readonly arguments: string
}

export interface PromptMessage {
  readonly role: string
  readonly content: string
  /** Offsets in `content`, in UTF-16 units, at which cached prefixes end. */
  readonly cacheBreakpoints?: readonly number[]
  readonly toolCalls?: readonly PromptCall[]
  readonly toolCallId?: string
  readonly reasoning?: string
}

/** A message in the form that the template can render. */
export interface LaidOut {
  readonly role: string
  readonly content: string
  readonly cacheBreakpoints?: readonly number[]
  readonly reasoning?: string
  readonly calls?: readonly {
    readonly id: string
    readonly name: string
    readonly arguments: Json
  }[]
  readonly answers?: { readonly id: string; readonly name?: string }
  /** Calls that are written behind the content, as the model would have. */
  readonly writtenCalls?: { readonly syntax: SyntaxName; readonly calls: readonly PromptCall[] }
  /** Tools that the template expects in this message. */
  readonly tools?: string
}

/** Templates expect arguments as an object; text that is not JSON stays text. */
export const readArguments = (text: string): Json => {
  try {
    return parseAsWritten(text)
  } catch {
    return text
  }
}

const shortId = (id: string): string => createHash("sha256").update(id).digest("hex").slice(0, 9)

/** Puts each call into a message of its own, followed by its result. */
const oneByOne = (messages: readonly PromptMessage[]): readonly PromptMessage[] =>
  messages.flatMap((message, at) => {
    const calls = message.toolCalls ?? []
    const isResult = (index: number) => messages[index]?.role === "tool"
    if (message.role === "tool") {
      let turn = at
      while (isResult(turn)) turn--
      return (messages[turn]?.toolCalls?.length ?? 0) > 1 &&
        messages[turn]?.toolCalls?.some(({ id }) => id === message.toolCallId)
        ? []
        : [message]
    }
    if (calls.length < 2) return [message]
    const results: PromptMessage[] = []
    for (let next = at + 1; isResult(next); next++) results.push(messages[next]!)
    return calls.flatMap((call, index) => [
      {
        ...message,
        content: index ? "" : message.content,
        ...(index ? { cacheBreakpoints: [] } : {}),
        toolCalls: [call],
      },
      ...results.filter(({ toolCallId }) => toolCallId === call.id),
    ])
  })

const shifted = ({ cacheBreakpoints = [] }: PromptMessage, by: number) =>
  cacheBreakpoints.length ? { cacheBreakpoints: cacheBreakpoints.map((offset) => offset + by) } : {}

/**
 * Turns calls and results that the template can't render into text, in the form that the model was
 * trained on.
 */
const layMessage = (
  style: TemplateStyle,
  message: PromptMessage,
  nameOf: (id: string) => string | undefined,
): LaidOut => {
  const { role, content, cacheBreakpoints, reasoning, toolCalls, toolCallId } = message
  const kept = {
    role,
    content,
    ...(cacheBreakpoints && { cacheBreakpoints }),
    ...(reasoning !== undefined && { reasoning }),
  }
  const idOf = (id: string) => (style.wantsShortIds ? shortId(id) : id)
  if (toolCalls?.length) {
    if (style.writesCalls)
      return {
        ...kept,
        calls: toolCalls.map((call) => ({
          ...call,
          id: idOf(call.id),
          arguments: readArguments(call.arguments),
        })),
      }
    if (!style.isAnnounced)
      return { ...kept, writtenCalls: { syntax: style.syntax, calls: toolCalls } }
    return {
      ...kept,
      content: [content, writeCalls(syntaxes[style.syntax], toolCalls)].filter(Boolean).join("\n"),
    }
  }
  if (role !== "tool") return kept
  const name = nameOf(toolCallId ?? "")
  if (style.writesResults)
    return { ...kept, answers: { id: idOf(toolCallId ?? ""), ...(name !== undefined && { name }) } }
  const before = "<tool_response>\n"
  return {
    ...kept,
    role: "user",
    content: `${before}${content}\n</tool_response>`,
    ...shifted(message, before.length),
  }
}

/**
 * Joins the results of one turn into one message, for templates that require user and assistant
 * turns to alternate.
 */
const joinResults = (
  style: TemplateStyle,
  before: readonly PromptMessage[],
  laid: readonly LaidOut[],
): readonly LaidOut[] => {
  if (style.writesResults) return laid
  const joined: LaidOut[] = []
  for (const [at, message] of laid.entries()) {
    const last = joined.at(-1)
    const follows = before[at]?.role === "tool" || before[at]?.role === "user"
    if (!last || !follows || before[at - 1]?.role !== "tool") joined.push(message)
    else {
      const content = `${last.content}\n${message.content}`
      const cacheBreakpoints = [
        ...(last.cacheBreakpoints ?? []),
        ...(message.cacheBreakpoints ?? []).map((offset) => offset + last.content.length + 1),
      ]
      joined[joined.length - 1] = { ...last, content, cacheBreakpoints }
    }
  }
  return joined
}

/**
 * Announces tools in the system message where the template does not; where it takes no system
 * message, in the first user message.
 */
const announced = (
  laid: readonly LaidOut[],
  text: string,
  place: "system" | "user",
): readonly LaidOut[] => {
  const [first, ...rest] = laid
  if (first?.role === "system" && place === "system")
    return [{ ...first, content: first.content ? `${first.content}\n\n${text}` : text }, ...rest]
  if (place === "system") return [{ role: "system", content: text }, ...laid]
  const at = laid.findIndex(({ role }) => role === "user")
  const before = `${text}\n\n`
  return laid.map((message, index) =>
    index === at
      ? {
          ...message,
          content: before + message.content,
          cacheBreakpoints: (message.cacheBreakpoints ?? []).map(
            (offset) => offset + before.length,
          ),
        }
      : message,
  )
}

/** Tells the schema of the answer behind what the system message says. */
export const withSchema = (
  laid: readonly LaidOut[],
  schema: string | undefined,
): readonly LaidOut[] =>
  schema === undefined
    ? laid
    : announced(laid, `Answer with JSON that keeps to this JSON Schema:\n${schema}`, "system")

/** Puts tools into the system message, where the template expects them. */
const withTools = (laid: readonly LaidOut[], tools: readonly PromptTool[]): readonly LaidOut[] => {
  const [first, ...rest] = laid
  const text = phiTools(tools)
  if (first?.role === "system") return [{ ...first, tools: text }, ...rest]
  // the text that Phi was trained with
  const content = "You are a helpful assistant with some tools."
  return [{ role: "system", content, tools: text }, ...laid]
}

/** Returns the messages in a form that the template can render. */
export const layOut = (
  style: TemplateStyle,
  messages: readonly PromptMessage[],
  tools: readonly PromptTool[],
  place: "system" | "user",
): readonly LaidOut[] => {
  const names = new Map(
    messages.flatMap(({ toolCalls = [] }) => toolCalls.map(({ id, name }) => [id, name] as const)),
  )
  const split = style.takesOneCall ? oneByOne(messages) : messages
  const laid = joinResults(
    style,
    split,
    split.map((message) => layMessage(style, message, (id) => names.get(id))),
  )
  if (!tools.length) return laid
  if (style.isAnnounced) return announced(laid, announcement(tools, style.syntax), place)
  return style.toolsName === "message" ? withTools(laid, tools) : laid
}
