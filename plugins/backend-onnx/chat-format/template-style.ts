import { type SyntaxName, syntaxes } from "./call-syntax.ts"

/**
 * What a chat template can render by itself; the rest is prepared for it in chat-prompt-layout.ts.
 */
export interface TemplateStyle {
  readonly syntax: SyntaxName
  /**
   * It does not describe tools to the model, or in an unknown form: a system text announces them.
   */
  readonly isAnnounced: boolean
  /** It renders `tool_calls` of earlier turns. */
  readonly writesCalls: boolean
  /** It knows the role `tool`. */
  readonly writesResults: boolean
  /** It refuses several calls in one message. */
  readonly takesOneCall: boolean
  /** It refuses call ids that are not nine letters or digits. */
  readonly wantsShortIds: boolean
  /** The variable in which it expects tools; `message`: a field of the system message, as text. */
  readonly toolsName: "tools" | "xml_tools" | "message"
  /** It has a place for the JSON Schema of the answer, the variable `json_schema`. */
  readonly takesSchema: boolean
  readonly thinks: boolean
  /** It renders contents as lists of parts only: a text alone would be left out. */
  readonly takesParts: boolean
}

export const thinkOpen = "<think>"
export const thinkClose = "</think>"

const syntaxOf = (template: string): SyntaxName | undefined => {
  // the same words around calls that are not JSON: functions in XML, arguments behind a marker of
  // their own
  if (/<function=|<arg_key>|\[ARGS\]/.test(template)) return undefined
  if (template.includes("[TOOL_CALLS]")) return "mistral"
  if (template.includes("<|tool|>")) return "phi"
  // SmolLM2's form, in any template that describes it
  if (/<tool_call>\s*\[/.test(template)) return "list"
  if (template.includes("<tool_call>")) return "hermes"
  if (/\bipython\b/.test(template) && template.includes("parameters")) return "llama"
  return undefined
}

/** Looks at the type of a content's parts. */
const ofParts = /(\[['"]type['"]\]|\.type)\s*==\s*['"](text|image)['"]|selectattr\(\s*['"]type['"]/

/** Detected from the template's text, as no other file of a model says how it writes calls. */
export const templateStyle = (template: string): TemplateStyle => {
  const toolsName = /\bxml_tools\b/.test(template)
    ? "xml_tools"
    : /\bmessage\[['"]tools['"]\]/.test(template)
      ? "message"
      : "tools"
  const own = /\b(xml_)?tools\b/.test(template) ? syntaxOf(template) : undefined
  const isAnnounced = own === undefined
  return {
    syntax: own ?? (/\bSmolLM\b/.test(template) ? "list" : "hermes"),
    isAnnounced,
    writesCalls: !isAnnounced && /\btool_calls\b/.test(template),
    // Phi's writes every role
    writesResults: own === "phi" || (!isAnnounced && /["'](?:tool|ipython)["']/.test(template)),
    takesOneCall: template.includes("single tool-calls"),
    wantsShortIds: /\|\s*length\s*!=\s*9/.test(template),
    toolsName,
    takesSchema: /\bjson_schema\b/.test(template),
    thinks: template.includes(thinkClose),
    takesParts: ofParts.test(template) && !/\bis (not )?string\b/.test(template),
  }
}

/** The style of a template that fails with tools: they are announced as text. */
export const announcing = (style: TemplateStyle): TemplateStyle =>
  style.isAnnounced
    ? style
    : { ...style, syntax: "hermes", isAnnounced: true, writesCalls: false, writesResults: false }

/** Texts of a style that a vocabulary may have as single control tokens. */
const markersOf = ({ syntax, isAnnounced, thinks }: TemplateStyle): readonly string[] => {
  const { trigger, prefix, close } = syntaxes[syntax]
  // announced calls are ordinary text, markers included
  const ofCalls = isAnnounced ? [] : [trigger, prefix, close.replace(/^[\s\]]+/, "")]
  return [...ofCalls, ...(thinks ? [thinkOpen, thinkClose] : [])].filter((text): text is string =>
    Boolean(text),
  )
}

/** Ids of the markers that are control tokens, by text. */
export const markersIn = (
  style: TemplateStyle,
  controlTokens: Readonly<Record<string, number>>,
): Readonly<Record<string, number>> =>
  Object.fromEntries(
    markersOf(style).flatMap((text) =>
      Object.hasOwn(controlTokens, text) ? [[text, controlTokens[text]!] as const] : [],
    ),
  )
