import { Schema } from "effect"
import { atMostCharacters } from "../../core/characters.ts"
import { optional } from "../../core/decode.ts"
import type { Json } from "../../core/json.ts"
import type { ResponseFormat } from "../../core/ports/model.ts"
import { JsonSchemaBody, oversize } from "./json-schema-limits.ts"
import { Grammar, Pattern } from "./response-format.ts"

const parsed = (text: string): Json => {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

const schemaOf = (given: Json): Json => (typeof given === "string" ? parsed(given) : given)

// parsed at once, without the bounds of bodies
const JsonText = Schema.String.check(atMostCharacters(64 * 1024)).check(
  Schema.makeFilter((text: string) => {
    const schema = parsed(text)
    if (typeof schema !== "boolean" && (typeof schema !== "object" || schema === null))
      return "must be a JSON Schema, as an object or as its JSON text"
    return oversize(schema)
  }),
)
const GivenSchema = Schema.Union([JsonSchemaBody, JsonText])
const Choices = Schema.Array(
  Schema.String.check(Schema.isMinLength(1, { message: "must not be empty" })).check(
    atMostCharacters(1_000),
  ),
)
  .check(Schema.isMinLength(1, { message: "must hold at least one choice" }))
  .check(Schema.isMaxLength(1_000, { message: "must hold at most 1,000 choices" }))

const like = (name: string) => ({ description: `The form of the answer, as ${name} has it.` })
const vllm = like("vLLM")

/** The form of the answer by the names that other servers have for it. */
export const structuredOutputFields = {
  guided_json: optional(GivenSchema).annotate(vllm),
  guided_regex: optional(Pattern).annotate(vllm),
  guided_choice: optional(Choices).annotate(vllm),
  guided_grammar: optional(Grammar).annotate(vllm),
  structured_outputs: optional(
    Schema.Struct({
      json: optional(GivenSchema),
      regex: optional(Pattern),
      choice: optional(Choices),
      grammar: optional(Grammar),
      json_object: optional(Schema.Boolean),
    }),
  ).annotate(vllm),
  json_schema: optional(GivenSchema).annotate(like("llama.cpp")),
  regex: optional(Pattern).annotate(like("SGLang")),
}

type Fields = {
  readonly [Name in keyof typeof structuredOutputFields]?: (typeof structuredOutputFields)[Name]["Type"]
}

const json = (param: string, given: unknown): readonly ResponseFormat[] =>
  given == null
    ? []
    : [{ type: "json_schema", schema: schemaOf(given as Json), strict: true, param }]
const regex = (param: string, pattern: string | null | undefined): readonly ResponseFormat[] =>
  pattern == null ? [] : [{ type: "regex", pattern, param }]
const grammar = (param: string, lark: string | null | undefined): readonly ResponseFormat[] =>
  lark == null ? [] : [{ type: "grammar", lark, param }]
const choice = (
  param: string,
  choices: readonly string[] | null | undefined,
): readonly ResponseFormat[] => (choices == null ? [] : [{ type: "choice", choices, param }])

/** Returns what these fields ask for. */
export const formatsOf = (body: Fields): readonly ResponseFormat[] => {
  const own = body.structured_outputs ?? {}
  return [
    ...json("guided_json", body.guided_json),
    ...regex("guided_regex", body.guided_regex),
    ...choice("guided_choice", body.guided_choice),
    ...grammar("guided_grammar", body.guided_grammar),
    ...json("structured_outputs.json", own.json),
    ...regex("structured_outputs.regex", own.regex),
    ...choice("structured_outputs.choice", own.choice),
    ...grammar("structured_outputs.grammar", own.grammar),
    ...(own.json_object
      ? [{ type: "json_object", param: "structured_outputs.json_object" } as const]
      : []),
    ...json("json_schema", body.json_schema),
    ...regex("regex", body.regex),
  ]
}

/** The answer has one form at most. */
export const formatProblem = (
  body: Fields & { readonly response_format?: { readonly type: string } | null },
) => {
  const [first, second] = formatsOf(body)
  const isAsked = body.response_format != null && body.response_format.type !== "text"
  const beyond = isAsked ? first : second
  return (
    beyond && {
      path: (beyond.param ?? "").split("."),
      issue: "is a second form of the answer; only one is possible",
    }
  )
}
