import type { Json } from "../../../core/json.ts"
import type { ChatRequest, ResponseFormat, ToolDefinition } from "../../../core/ports/model.ts"
import {
  besideDocument,
  type CallSyntax,
  type SyntaxName,
  syntaxes,
} from "../chat-format/call-syntax.ts"
import type { EmbeddedDocument, Grammar } from "../grammar/constraint.ts"
import { readLark } from "../grammar/lark/read-lark.ts"
import { ecmaPattern, wholePattern } from "../grammar/schema/pattern.ts"
import {
  anyText,
  documentOf,
  literalOf,
  matching,
  oneOf,
  plainBeginning,
  sequence,
  without,
} from "./lark.ts"

/** A tool with the schema of its arguments, in the subset that llguidance enforces exactly. */
export interface ConstrainedTool {
  readonly name: string
  readonly schema: Json
  /** The schema that finished values are checked by, where `schema` is not all of it. */
  readonly checkedBy?: Json
}

export interface Wanted {
  readonly syntax: SyntaxName
  /** Ids of control tokens, by text. */
  readonly markers: Readonly<Record<string, number>>
  /** The tools that may be called, and how. Absent: none. */
  readonly calls?: {
    readonly tools: readonly ConstrainedTool[]
    readonly isRequired: boolean
    readonly most: number
  }
  /** The request has tools that must not be called. */
  readonly forbidsCalls: boolean
  /** The JSON document: its schema, and the part of it that is enforced. */
  readonly document?: {
    readonly schema: Json
    readonly enforced: Json
    /** Whether finished values are checked by the schema. */
    readonly isChecked?: boolean
  }
  /** The grammar of a whole answer that is no document. */
  readonly text?: Grammar
}

/** The grammar of an answer, and how its text is parsed. */
export interface ConstrainedAnswer {
  readonly grammar: Grammar
  /** Syntax of calls, if there can be any. */
  readonly syntax?: CallSyntax
  /**
   * Free text comes first and ends where this text begins. Absent: the whole answer is constrained.
   */
  readonly freeUntil?: string
}

/**
 * The maximum number of calls of an answer, as a small model that repeats itself would go on until
 * max_tokens.
 */
export const mostCalls = 32

/** Returns the tools that the request allows the model to call. */
export const callableTools = ({
  tools = [],
  toolChoice = "auto",
  allowedTools,
}: Pick<ChatRequest, "tools" | "toolChoice" | "allowedTools">): readonly ToolDefinition[] => {
  if (toolChoice === "none") return []
  if (typeof toolChoice === "object") return tools.filter(({ name }) => name === toolChoice.name)
  return allowedTools ? tools.filter(({ name }) => allowedTools.includes(name)) : tools
}

/** Returns how often tools may be called: a named tool once, otherwise as the request says. */
export const mostCallsOf = ({
  toolChoice,
  parallelToolCalls = true,
}: Pick<ChatRequest, "toolChoice" | "parallelToolCalls">): number =>
  typeof toolChoice === "object" || !parallelToolCalls ? 1 : mostCalls

export const documentSchema = (format: ResponseFormat | undefined): Json | undefined => {
  if (format?.type === "json_schema") return format.schema
  return format?.type === "json_object" ? { type: "object" } : undefined
}

const terminal = (rule: string): Grammar => lark(["start: TEXT", `TEXT: ${rule}`])

/**
 * Returns the grammar of an answer that is one of several texts, matches a pattern, or follows a
 * grammar of its own. Throws `SyntaxError`, `PatternRefused` or `LarkRefused`.
 */
export const textGrammar = (format: ResponseFormat | undefined): Grammar | undefined => {
  if (format?.type === "choice") return terminal(oneOf(format.choices))
  if (format?.type === "grammar")
    return { kind: "lark", lark: readLark(format.lark), isCustom: true }
  if (format?.type !== "regex") return undefined
  // alone, too: `a)|(?:b` is a pattern only when it is wrapped
  ecmaPattern(format.pattern)
  return terminal(matching(wholePattern(`^(?:${format.pattern})$`)))
}

const beforeArguments = (name: string, key: CallSyntax["argumentsKey"]): string =>
  `{"name": ${JSON.stringify(name)}, "${key}": `

/** Where the documents of an answer may begin. */
const signOf = (
  { trigger, prefix }: CallSyntax,
  { markers, document }: Wanted,
  isRequired: boolean,
): Pick<EmbeddedDocument, "trigger" | "beginnings"> => {
  if (isRequired && document === undefined) return {}
  if (trigger !== undefined)
    return { trigger: Object.hasOwn(markers, trigger) ? markers[trigger]! : trigger }
  return { beginnings: ["{", ...(prefix === undefined ? [] : [prefix])] }
}

/**
 * The arguments, and the document beside calls, if finished values of any are checked: what looks
 * like a call within another document is none.
 */
const checkedDocuments = (
  syntax: CallSyntax,
  wanted: Wanted,
  { tools, isRequired }: NonNullable<Wanted["calls"]>,
): readonly EmbeddedDocument[] => {
  const document = isRequired ? undefined : wanted.document
  if (!document?.isChecked && tools.every(({ checkedBy }) => checkedBy === undefined)) return []
  const sign = signOf(syntax, wanted, isRequired)
  return [
    ...tools.map(({ name, checkedBy = {} }) => ({
      schema: checkedBy,
      before: beforeArguments(name, syntax.argumentsKey),
      ...sign,
    })),
    ...(document
      ? [{ schema: document.isChecked ? document.schema : {}, before: "", ...sign }]
      : []),
  ]
}

/** Grammar rules for one call and for all calls, behind the trigger. */
const callRules = (
  { open, close, separator, repeat, trigger = "", argumentsKey }: CallSyntax,
  tools: readonly ConstrainedTool[],
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
      `call_${index}: ${literal(beforeArguments(name, argumentsKey))} arguments_${index} "}"`,
      `arguments_${index}: ${documentOf(schema)}`,
    ]),
  ]
}

/** The text before calls. */
const begin = ({ trigger = "", prefix = "" }: CallSyntax, markers: Wanted["markers"]): string =>
  literalOf(trigger, markers) || (prefix && `(${literalOf(prefix, markers)})?`)

/** Rules for free text, optionally followed by calls. */
const freeRules = (syntax: CallSyntax, markers: Wanted["markers"]): readonly string[] => {
  const { trigger, prefix } = syntax
  if (trigger === undefined)
    return [
      `start: TEXT? | ${sequence(begin(syntax, markers), "calls")}`,
      `TEXT: ${plainBeginning(prefix)}`,
    ]
  // free text can't contain the control token, but could spell its letters
  if (Object.hasOwn(markers, trigger))
    return [`start: TEXT | TEXT ${literalOf(trigger, markers)} calls`, `TEXT: ${without(trigger)}`]
  return [
    "start: TEXT | before calls",
    `before[lazy]: TEXT ${literalOf(trigger, {})}`,
    `TEXT: ${anyText}`,
  ]
}

const lark = (rules: readonly string[], documents: readonly EmbeddedDocument[] = []): Grammar => ({
  kind: "lark",
  lark: `${rules.join("\n")}\n`,
  ...(documents.length > 0 && { documents }),
})

const callGrammar = (wanted: Wanted, calls: NonNullable<Wanted["calls"]>): ConstrainedAnswer => {
  const { markers, document } = wanted
  const own = syntaxes[wanted.syntax]
  const syntax = document === undefined ? own : besideDocument(own)
  const rules = callRules(syntax, calls.tools, calls.most, markers)
  const called = sequence(begin(syntax, markers), "calls")
  const checked = checkedDocuments(syntax, wanted, calls)
  if (calls.isRequired)
    return { grammar: lark([`start: WS? ${called}`, "WS: /\\n{1,2}/", ...rules], checked), syntax }
  if (document !== undefined)
    return {
      grammar: lark(
        [`start: ${called} | document`, `document: ${documentOf(document.enforced)}`, ...rules],
        checked,
      ),
      syntax,
    }
  return {
    grammar: lark([...freeRules(syntax, markers), ...rules], checked),
    syntax,
    freeUntil: syntax.trigger ?? '{"name": "',
  }
}

/** Returns the grammar of an answer; undefined: it may be any text. */
export const grammarFor = (wanted: Wanted): ConstrainedAnswer | undefined => {
  const { calls, document, text } = wanted
  if (text) return { grammar: text }
  if (calls?.tools.length) return callGrammar(wanted, calls)
  if (document !== undefined) return { grammar: { kind: "schema", schema: document.schema } }
  const { trigger } = syntaxes[wanted.syntax]
  return wanted.forbidsCalls && trigger !== undefined
    ? { grammar: lark(["start: TEXT", `TEXT: ${without(trigger)}`]), freeUntil: trigger }
    : undefined
}
