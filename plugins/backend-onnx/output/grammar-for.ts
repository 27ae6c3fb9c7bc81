import type { Json } from "../../../core/json.ts"
import type { ChatRequest, ResponseFormat, ToolDefinition } from "../../../core/ports/model.ts"
import {
  besideDocument,
  type CallSyntax,
  type SyntaxName,
  syntaxes,
} from "../chat-format/call-syntax.ts"
import type { Grammar } from "../grammar/constraint.ts"
import { anyText, documentOf, literalOf, plainBeginning, sequence, without } from "./lark.ts"

/** A tool with the schema that its arguments are held to, as the masks' engine keeps it. */
export interface GuidedTool {
  readonly name: string
  readonly schema: Json
}

export interface Wanted {
  readonly syntax: SyntaxName
  /** Control tokens by their text. */
  readonly markers: Readonly<Record<string, number>>
  /** Those that may be called, and how. Absent: none may be. */
  readonly calls?: {
    readonly tools: readonly GuidedTool[]
    readonly isRequired: boolean
    readonly most: number
  }
  /** Tools are there, but must not be called. */
  readonly forbidsCalls: boolean
  /** The document: its schema, and what of it the masks' engine keeps. */
  readonly document?: { readonly schema: Json; readonly guided: Json }
}

/** What the grammar of an answer is, and how its text is read. */
export interface Ruled {
  readonly grammar: Grammar
  /** Of calls, if there can be any. */
  readonly syntax?: CallSyntax
  /** Free text comes first: it ends where this text begins. Absent: the grammar rules everything. */
  readonly freeUntil?: string
}

/** No answer has more calls: a small model that repeats itself would go on to its last token. */
export const mostCalls = 32

/** The tools that this request lets the model call. */
export const callableTools = ({
  tools = [],
  toolChoice = "auto",
}: Pick<ChatRequest, "tools" | "toolChoice">): readonly ToolDefinition[] => {
  if (toolChoice === "none") return []
  return typeof toolChoice === "object"
    ? tools.filter(({ name }) => name === toolChoice.name)
    : tools
}

/** A named tool is called once; otherwise as often as the request says. */
export const mostCallsOf = ({
  toolChoice,
  parallelToolCalls = true,
}: Pick<ChatRequest, "toolChoice" | "parallelToolCalls">): number =>
  typeof toolChoice === "object" || !parallelToolCalls ? 1 : mostCalls

export const documentSchema = (format: ResponseFormat | undefined): Json | undefined =>
  format?.type === "json_schema" ? format.schema : format && { type: "object" }

/** Rules for one call and for all of them, behind the trigger. */
const callRules = (
  { open, close, separator, repeat, trigger = "", argumentsKey }: CallSyntax,
  tools: readonly GuidedTool[],
  most: number,
  markers: Wanted["markers"],
): readonly string[] => {
  const literal = (text: string) => literalOf(text, markers)
  const again = most > 1 ? `{0,${most - 1}}` : ""
  const group = sequence(
    literal(open),
    "item",
    again && separator !== undefined ? `(${sequence(literal(separator), "item")})${again}` : "",
    literal(close),
  )
  return [
    `calls: ${sequence("group", again && repeat !== undefined ? `(${sequence(literal(repeat), literal(trigger), "group")})${again}` : "")}`,
    `group: ${group}`,
    `item: ${tools.map((_, index) => `call_${index}`).join(" | ")}`,
    ...tools.flatMap(({ name, schema }, index) => [
      `call_${index}: ${literal(`{"name": ${JSON.stringify(name)}, "${argumentsKey}": `)} arguments_${index} "}"`,
      `arguments_${index}: ${documentOf(schema)}`,
    ]),
  ]
}

/** What stands before calls. */
const begin = ({ trigger = "", prefix = "" }: CallSyntax, markers: Wanted["markers"]): string =>
  literalOf(trigger, markers) || (prefix && `(${literalOf(prefix, markers)})?`)

/** Free text, or calls behind it. */
const freeRules = (syntax: CallSyntax, markers: Wanted["markers"]): readonly string[] => {
  const { trigger, prefix } = syntax
  if (trigger === undefined)
    return [
      `start: TEXT? | ${sequence(begin(syntax, markers), "calls")}`,
      `TEXT: ${plainBeginning(prefix)}`,
    ]
  // a control token can't be part of a text, but its letters could be written one by one
  if (Object.hasOwn(markers, trigger))
    return [`start: TEXT | TEXT ${literalOf(trigger, markers)} calls`, `TEXT: ${without(trigger)}`]
  return [
    "start: TEXT | before calls",
    `before[lazy]: TEXT ${literalOf(trigger, {})}`,
    `TEXT: ${anyText}`,
  ]
}

const lark = (rules: readonly string[]): Grammar => ({
  kind: "lark",
  lark: `${rules.join("\n")}\n`,
})

const callGrammar = (wanted: Wanted, calls: NonNullable<Wanted["calls"]>): Ruled => {
  const { markers, document } = wanted
  const own = syntaxes[wanted.syntax]
  const syntax = document === undefined ? own : besideDocument(own)
  const rules = callRules(syntax, calls.tools, calls.most, markers)
  const called = sequence(begin(syntax, markers), "calls")
  if (calls.isRequired)
    return { grammar: lark([`start: WS? ${called}`, "WS: /\\n{1,2}/", ...rules]), syntax }
  if (document !== undefined)
    return {
      grammar: lark([
        `start: ${called} | document`,
        `document: ${documentOf(document.guided)}`,
        ...rules,
      ]),
      syntax,
    }
  return {
    grammar: lark([...freeRules(syntax, markers), ...rules]),
    syntax,
    freeUntil: syntax.trigger ?? '{"name": "',
  }
}

/** The grammar of an answer; undefined: it may be any text. */
export const grammarFor = (wanted: Wanted): Ruled | undefined => {
  const { calls, document } = wanted
  if (calls?.tools.length) return callGrammar(wanted, calls)
  if (document !== undefined) return { grammar: { kind: "schema", schema: document.schema } }
  const { trigger } = syntaxes[wanted.syntax]
  return wanted.forbidsCalls && trigger !== undefined
    ? { grammar: lark(["start: TEXT", `TEXT: ${without(trigger)}`]), freeUntil: trigger }
    : undefined
}
