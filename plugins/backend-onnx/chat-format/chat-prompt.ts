import type { Json } from "../../../core/json.ts"
import { type ChatTokenizer, forTools } from "../tokenizer/chat-tokenizer.ts"
import { tokensBefore, withoutSigns, withSigns } from "./cache-breakpoints.ts"
import { type SyntaxName, syntaxes, writeCalls } from "./call-syntax.ts"
import {
  type LaidOut,
  layOut,
  type PromptMessage,
  readArguments,
  withSchema,
} from "./chat-prompt-layout.ts"
import { functionOf, type PromptTool } from "./chat-prompt-tools.ts"
import { type ControlGuard, controlGuard, shieldAll, unusedCharacter } from "./control-guard.ts"
import { imageTokenOf, type PromptImages, partsOf, withImages } from "./prompt-images.ts"
import {
  announcing,
  markersIn,
  type TemplateStyle,
  templateStyle,
  thinkClose,
  thinkOpen,
} from "./template-style.ts"

export type { PromptMessage } from "./chat-prompt-layout.ts"

export interface PromptRequest {
  readonly messages: readonly PromptMessage[]
  /** The tools that are described to the model. */
  readonly tools?: readonly PromptTool[]
  /**
   * The JSON Schema of the answer, as text. `isAnnounced`: the system message tells it where the
   * template has no place for it.
   */
  readonly schema?: { readonly text: string; readonly isAnnounced: boolean }
  readonly thinking?: boolean
  readonly images?: PromptImages
}

/** How an answer to this prompt has to be parsed. */
export interface PromptForm {
  readonly syntax: SyntaxName
  /** `begun`: the prompt ends inside the reasoning; `possible`: the model may open it by itself. */
  readonly reasoning: "none" | "begun" | "possible"
  /**
   * Ids of control tokens, by text, that have a meaning in answers, such as `</think>`; as control
   * tokens they have no bytes of their own.
   */
  readonly markers: Readonly<Record<string, number>>
}

/**
 * `cacheBreakpoints`: the number of tokens before each breakpoint, rising. `tooLong`: a lower bound
 * of the number of tokens. `refused`: the template's own message.
 */
export type Prompt =
  | {
      readonly ids: Int32Array
      readonly cacheBreakpoints: readonly number[]
      readonly form: PromptForm
    }
  | { readonly tooLong: number }
  | { readonly refused: string }

/** Calls in the model's own syntax, whose markers are control tokens where it has such. */
const callsIn = (
  guard: ControlGuard,
  { syntax, calls }: NonNullable<LaidOut["writtenCalls"]>,
): string =>
  writeCalls(
    syntaxes[syntax],
    calls.map((call) => ({
      name: guard.shield(call.name),
      arguments: guard.shield(call.arguments),
    })),
  )

/** How texts from outside get through a template. */
interface Shielding {
  readonly guard: ControlGuard
  readonly sign: string
  readonly takesParts: boolean
  /** See `PromptImages`. */
  readonly mark: string | undefined
  readonly kind: PromptImages["kind"]
}

/**
 * A message as templates read it, with text from outside shielded. Optional keys are left out when
 * empty, because templates test whether they are defined.
 */
const forTemplate = (
  { guard, sign, takesParts, mark, kind }: Shielding,
  { role, content, cacheBreakpoints = [], ...more }: LaidOut,
): Json => {
  const { reasoning, calls, answers, writtenCalls, tools } = more
  const shielded = guard.shield(withSigns(content, cacheBreakpoints, sign))
  const text = [shielded, writtenCalls ? callsIn(guard, writtenCalls) : ""]
    .filter(Boolean)
    .join("\n")
  return {
    role,
    content: takesParts || (mark && text.includes(mark)) ? partsOf(guard, text, mark, kind) : text,
    ...(tools !== undefined && { tools: guard.shield(tools) }),
    ...(reasoning !== undefined && { reasoning_content: guard.shield(reasoning) }),
    ...(calls && {
      tool_calls: calls.map((call) => ({
        id: guard.shield(call.id),
        type: "function",
        function: shieldAll(guard, { name: call.name, arguments: call.arguments }),
      })),
    }),
    ...(answers && {
      tool_call_id: guard.shield(answers.id),
      ...(answers.name !== undefined && { name: guard.shield(answers.name) }),
    }),
  }
}

const render = (
  chat: ChatTokenizer,
  variables: Readonly<Record<string, unknown>>,
): string | { readonly refused: string } => {
  try {
    return chat.template.render({
      ...variables,
      add_generation_prompt: true,
      bos_token: chat.format.bosToken,
      eos_token: chat.format.eosToken,
    })
  } catch (cause) {
    return { refused: (cause as Error).message }
  }
}

/** Opens or closes the reasoning at the end of the prompt. */
const withThinking = (
  rendered: string,
  style: TemplateStyle,
  thinking: boolean,
): { readonly text: string; readonly reasoning: PromptForm["reasoning"] } => {
  const isOpen = rendered.trimEnd().endsWith(thinkOpen)
  if (isOpen && !thinking)
    return { text: `${rendered.trimEnd()}\n\n${thinkClose}\n\n`, reasoning: "none" }
  if (isOpen) return { text: rendered, reasoning: "begun" }
  if (!style.thinks) return { text: rendered, reasoning: "none" }
  // a system text may turn it off (SmolLM3's /no_think)
  const isClosed = rendered.trimEnd().endsWith(thinkClose)
  if (thinking && !isClosed) return { text: `${rendered}${thinkOpen}\n`, reasoning: "begun" }
  return {
    text: rendered,
    reasoning: isClosed ? "none" : "possible",
  }
}

const encode = async (
  chat: ChatTokenizer,
  pieces: readonly (number | string)[],
  sign: string,
): Promise<Pick<Extract<Prompt, { ids: unknown }>, "ids" | "cacheBreakpoints">> => {
  const ids: number[] = []
  const cacheBreakpoints: number[] = []
  const { strippingTokens, strippingBefore } = chat.format
  const strips = (by: readonly number[], neighbour: number | string | undefined) =>
    typeof neighbour === "number" && by.includes(neighbour)
  for (const [at, piece] of pieces.entries()) {
    if (typeof piece === "number") {
      ids.push(piece)
      continue
    }
    const { text, cuts } = withoutSigns(piece, sign, {
      begin: strips(strippingTokens, pieces[at - 1]),
      end: strips(strippingBefore, pieces[at + 1]),
    })
    const tokenizer = ids.length ? chat.laterTokenizer : chat.tokenizer
    const encoding = await tokenizer.encode(text, null, { addSpecialTokens: false })
    for (const tokens of tokensBefore(encoding, cuts)) cacheBreakpoints.push(ids.length + tokens)
    for (const id of encoding.getIds()) ids.push(id)
  }
  return { ids: Int32Array.from(ids), cacheBreakpoints }
}

interface Rendered {
  readonly rendered: string | { readonly refused: string }
  readonly style: TemplateStyle
}

/** SmolLM3's template expects tools as texts. */
const toolsFor = (
  guard: ControlGuard,
  { toolsName }: TemplateStyle,
  tools: readonly PromptTool[],
): Json => {
  const functions = tools.map((tool) => functionOf(shieldAll(guard, tool)))
  return toolsName === "xml_tools" ? functions.map((one) => JSON.stringify(one)) : functions
}

/**
 * Renders the prompt with all text from outside shielded. Where the template can't render the
 * tools, tries again with tools announced as text, first in the system message, then in the first
 * user message. Where it takes no system message, the schema is left out.
 */
const renderAsk = (
  chat: ChatTokenizer,
  own: TemplateStyle,
  ask: PromptRequest,
  guard: ControlGuard,
  sign: string,
): Rendered => {
  const { messages, tools = [], schema, thinking = false, images } = ask
  const token = imageTokenOf(images, chat.format.controlTokens, own.takesParts)
  const mark = token === undefined ? undefined : images?.mark
  const shielding = { guard, sign, takesParts: own.takesParts, mark, kind: images?.kind }
  const attempt = (style: TemplateStyle, place: "system" | "user"): Rendered => {
    const announced = !own.takesSchema && schema?.isAnnounced ? schema.text : undefined
    const laid = withSchema(layOut(style, messages, tools, place), announced).map((message) =>
      forTemplate(shielding, message),
    )
    const shown =
      tools.length && !style.isAnnounced && style.toolsName !== "message"
        ? { [style.toolsName]: toolsFor(guard, style, tools) }
        : {}
    return {
      rendered: render(chat, {
        messages: laid,
        ...shown,
        ...(own.takesSchema && schema && { json_schema: guard.shield(schema.text) }),
        enable_thinking: thinking,
        thinking,
      }),
      style,
    }
  }
  let last = attempt(own, "system")
  for (const place of tools.length ? (["system", "user"] as const) : []) {
    if (typeof last.rendered === "string") break
    last = attempt(announcing(own), place)
  }
  if (typeof last.rendered === "string" || schema === undefined) return last
  const { schema: _, ...without } = ask
  return renderAsk(chat, own, without, guard, sign)
}

/** All text from outside that the prompt will contain. */
const writtenIn = ({ messages, tools = [], schema }: PromptRequest): readonly string[] => [
  schema?.text ?? "",
  ...messages.flatMap(({ content, reasoning = "", toolCallId = "" }) => [
    content,
    reasoning,
    toolCallId,
  ]),
  JSON.stringify([
    tools,
    messages.flatMap(({ toolCalls = [] }) =>
      toolCalls.map((call) => [call.id, call.name, readArguments(call.arguments)]),
    ),
  ]),
]

const leastTokens = (chat: ChatTokenizer, { messages, tools = [] }: PromptRequest): number => {
  const bytes = [
    ...messages.map(({ content }) => content),
    tools.length ? JSON.stringify(tools) : "",
  ].reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  return Math.ceil(bytes / chat.format.longestTokenBytes)
}

/** Renders and tokenizes messages in the model's own format, up to where its answer begins. */
export const chatPrompt = async (
  every: ChatTokenizer,
  ask: PromptRequest,
  contextTokens: number,
): Promise<Prompt> => {
  const chat = ask.tools?.length ? forTools(every) : every
  const atLeast = leastTokens(chat, ask)
  if (atLeast > contextTokens) return { tooLong: atLeast }
  const written = writtenIn(ask)
  const sign = unusedCharacter(written)
  const guard = sign && controlGuard(chat.format.controlTokens, [...written, sign])
  if (!guard) return { refused: "they use every private-use character" }
  const own = templateStyle(chat.format.template)
  const { rendered, style } = renderAsk(chat, own, ask, guard, sign)
  if (typeof rendered !== "string") return rendered
  const { text, reasoning } = withThinking(rendered, style, ask.thinking === true)
  const token = imageTokenOf(ask.images, chat.format.controlTokens, own.takesParts)
  const pieces = withImages(guard, guard.parse(text), ask.images, token)
  if (!pieces) return { refused: "it has no place for all of the images" }
  return {
    ...(await encode(chat, pieces, sign)),
    form: { syntax: style.syntax, reasoning, markers: markersIn(style, chat.format.controlTokens) },
  }
}
