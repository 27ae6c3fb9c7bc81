import type { Json } from "../../../core/json.ts"
import type { ChatRequest, ToolDefinition } from "../../../core/ports/model.ts"
import type { PromptForm } from "../chat-format/chat-prompt.ts"
import compileJob, { type Compiled } from "../grammar/compile-job.ts"
import type { SharedVocabulary } from "../grammar/grammar-vocabulary.ts"
import { LarkRefused } from "../grammar/lark/tokens.ts"
import { PatternRefused } from "../grammar/schema/pattern.ts"
import { analyseSchema } from "../grammar/schema-report.ts"
import {
  type ConstrainedAnswer,
  type ConstrainedTool,
  callableTools,
  documentSchema,
  grammarFor,
  mostCallsOf,
  textGrammar,
  type Wanted,
} from "./grammar-for.ts"

/**
 * The schema of a tool's arguments, which are always an object. Without a schema there are no
 * arguments. `undefined`: the schema allows no object.
 */
const argumentsSchema = (parameters: Json | undefined): Json | undefined => {
  if (parameters === undefined)
    return { type: "object", properties: {}, additionalProperties: false }
  if (parameters === true) return { type: "object" }
  if (typeof parameters !== "object" || parameters === null || Array.isArray(parameters))
    return undefined
  const { type } = parameters as { readonly type?: Json }
  const types: readonly Json[] = Array.isArray(type)
    ? type
    : type === undefined
      ? ["object"]
      : [type]
  return types.includes("object")
    ? { ...(parameters as Readonly<Record<string, Json>>), type: "object" }
    : undefined
}

export interface AnswerGrammarInput
  extends Pick<
    ChatRequest,
    "tools" | "toolChoice" | "allowedTools" | "parallelToolCalls" | "responseFormat"
  > {
  readonly form: Pick<PromptForm, "syntax" | "markers">
  /** The model's tokens. */
  readonly vocabulary: SharedVocabulary
}

export type NotCompiled = Exclude<Compiled, { readonly result: "ok" }>

/**
 * `constrained` is absent where the answer may be any text. `param` names the field that can't be
 * enforced.
 */
export type AnswerGrammarOutput =
  | { readonly constrained?: ConstrainedAnswer }
  | { readonly failed: NotCompiled; readonly param: string }
  /** A pattern or grammar of the whole answer. `isBroken`: it is none; otherwise it can't be kept. */
  | { readonly refused: string; readonly isBroken: boolean; readonly param: string }

class Failed extends Error {
  readonly failed: NotCompiled
  readonly param: string

  constructor(failed: NotCompiled, param: string) {
    super(param)
    this.failed = failed
    this.param = param
  }
}

class TextFailed extends Error {
  readonly isBroken: boolean
  readonly param: string

  constructor(message: string, isBroken: boolean, param: string) {
    super(message)
    this.isBroken = isBroken
    this.param = param
  }
}

// keyed by the compiled result, which is the same object for the same schema; each thread of the
// pool has its own
const enforcedBy = new WeakMap<Compiled, Enforced>()

interface Enforced {
  readonly enforced: Json
  /** Whether finished values are checked by the schema. */
  readonly isChecked: boolean
}

const enforcedOf = (found: Compiled, kept: Json): Enforced => {
  const known = enforcedBy.get(found)
  if (known !== undefined) return known
  const { enforced = {}, guards } = analyseSchema(kept)
  const fresh = { enforced, isChecked: guards !== undefined }
  enforcedBy.set(found, fresh)
  return fresh
}

/** Returns the part of a schema that llguidance enforces, alone or inside another grammar. */
const compiled = (
  schema: Json,
  isStrict: boolean,
  param: string,
  vocabulary: SharedVocabulary,
): Enforced & { readonly schema: Json; readonly isHeavy: boolean } => {
  const found = compileJob({ kind: "schema", schema, isStrict, vocabulary })
  if (found.result !== "ok") throw new Failed(found, param)
  const kept = found.grammar.kind === "schema" ? found.grammar.schema : schema
  return { schema: kept, isHeavy: found.grammar.isHeavy === true, ...enforcedOf(found, kept) }
}

const argumentsOf = (
  { parameters, strict }: ToolDefinition,
  param: string,
  vocabulary: SharedVocabulary,
): Pick<ConstrainedTool, "schema" | "checkedBy"> & { readonly isHeavy?: boolean } => {
  const schema = argumentsSchema(parameters)
  if (schema === undefined)
    throw new Failed(
      { result: "invalid", path: "/type", reason: "the arguments of a function are an object" },
      param,
    )
  const kept = compiled(schema, strict === true, param, vocabulary)
  // only what finished values are checked by is analysed again when the grammar is opened
  const checked = kept.isChecked ? { checkedBy: kept.schema, isHeavy: kept.isHeavy } : {}
  // a schema that is kept only in part may keep nothing: arguments are still an object
  return Object.keys(kept.schema as object).length
    ? { schema: kept.enforced, ...checked }
    : { schema: { ...(kept.enforced as Readonly<Record<string, Json>>), type: "object" } }
}

const paramOf = (format: AnswerGrammarInput["responseFormat"]): string =>
  format?.param ?? "response_format.json_schema.schema"

const documentOf = ({
  responseFormat: format,
  vocabulary,
}: AnswerGrammarInput): ReturnType<typeof compiled> | undefined => {
  const schema = documentSchema(format)
  return schema === undefined
    ? undefined
    : compiled(schema, format?.type === "json_schema" && format.strict, paramOf(format), vocabulary)
}

const textOf = ({ responseFormat: format }: AnswerGrammarInput): Wanted["text"] => {
  try {
    return textGrammar(format)
  } catch (cause) {
    if (cause instanceof SyntaxError) throw new TextFailed(cause.message, true, paramOf(format))
    if (cause instanceof PatternRefused)
      throw new TextFailed(`${cause.message} is not supported`, false, paramOf(format))
    if (!(cause instanceof LarkRefused)) throw cause
    throw new TextFailed(cause.message, cause.isBroken, paramOf(format))
  }
}

/** llguidance names the line and column of what it can't read. */
const textFailure = (failed: NotCompiled, param: string): TextFailed => {
  if (failed.result === "refused" && failed.keyword === "")
    return new TextFailed("no text satisfies it", true, param)
  const at = /^(?:at )?(\d+)\(\d+\): (.*)$/.exec(failed.reason)
  return at && !/too (?:big|large|many)/.test(failed.reason)
    ? new TextFailed(`line ${at[1]}: ${at[2]}`, true, param)
    : new TextFailed(`it is too complex: ${failed.reason}`, false, param)
}

/** Checks every schema, also those of tools that must not be called. */
const answerConstraint = (input: AnswerGrammarInput): ConstrainedAnswer | undefined => {
  const { tools = [], toolChoice, form } = input
  const schemas = new Map(
    tools.map((tool, index) => [
      tool.name,
      argumentsOf(tool, `tools[${index}].function.parameters`, input.vocabulary),
    ]),
  )
  const document = documentOf(input)
  const text = textOf(input)
  const callable = callableTools(input)
  const isRequired = toolChoice === "required" || typeof toolChoice === "object"
  const constrained = grammarFor({
    ...form,
    ...(callable.length && {
      calls: {
        tools: callable.map(({ name }) => ({ name, ...schemas.get(name)! })),
        isRequired,
        most: mostCallsOf(input),
      },
    }),
    forbidsCalls: tools.length > 0,
    ...(document && { document }),
    ...(text && { text }),
  })
  const weighed = (parts: readonly ({ readonly isHeavy?: boolean } | undefined)[]) =>
    constrained && parts.some((part) => part?.isHeavy)
      ? { ...constrained, grammar: { ...constrained.grammar, isHeavy: true } }
      : constrained
  if (constrained?.grammar.kind !== "lark") return weighed([document])
  const whole = compileJob({ ...constrained.grammar, vocabulary: input.vocabulary })
  const checked = [
    ...callable.map(({ name }) => schemas.get(name)),
    ...(document?.isChecked ? [document] : []),
  ]
  if (whole.result === "ok") return weighed([whole.grammar, ...checked])
  throw text ? textFailure(whole, paramOf(input.responseFormat)) : new Failed(whole, "tools")
}

/**
 * Runs in the thread pool. Compiles the answer's grammar once before anything is paid for or
 * generated.
 */
export default (input: AnswerGrammarInput): AnswerGrammarOutput => {
  try {
    const constrained = answerConstraint(input)
    return { ...(constrained && { constrained }) }
  } catch (cause) {
    if (cause instanceof TextFailed)
      return { refused: cause.message, isBroken: cause.isBroken, param: cause.param }
    if (!(cause instanceof Failed)) throw cause
    return { failed: cause.failed, param: cause.param }
  }
}
