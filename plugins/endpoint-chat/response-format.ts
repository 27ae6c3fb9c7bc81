import { Schema } from "effect"
import { atMostCharacters } from "../../core/characters.ts"
import { optional } from "../../core/decode.ts"
import type { ResponseFormat as Format } from "../../core/ports/model.ts"
import { JsonSchemaBody } from "./json-schema-limits.ts"
import { Name } from "./tool-schema.ts"

const text = (most: number) =>
  Schema.String.check(Schema.isMinLength(1, { message: "must not be empty" })).check(
    atMostCharacters(most),
  )

export const Pattern = text(10_000).annotate({
  description: "An ECMAScript pattern that the whole answer matches.",
})
export const Grammar = text(64 * 1024).annotate({
  description: "A grammar in Lark, whose rule `start` is the whole answer.",
})

const closeOnLength = optional(Schema.Boolean).annotate({
  description:
    "Near `max_tokens` the document is closed, so that it is whole where the schema allows it; `finish_reason` stays `length`.",
  default: false,
})

const JsonSchemaFormat = Schema.Struct({
  name: Name,
  description: optional(Schema.String.check(atMostCharacters(16_384))),
  schema: JsonSchemaBody,
  strict: optional(Schema.Boolean).annotate({
    description:
      "A keyword that can't be kept is a 400; otherwise the schema guides as far as it can.",
    default: false,
  }),
  close_on_length: closeOnLength,
}).annotate({ identifier: "JsonSchemaFormat" })

export const ResponseFormat = Schema.Union([
  Schema.Struct({ type: Schema.Literal("text") }),
  Schema.Struct({ type: Schema.Literal("json_object"), close_on_length: closeOnLength }),
  Schema.Struct({ type: Schema.Literal("json_schema"), json_schema: JsonSchemaFormat }),
  Schema.Struct({
    type: Schema.Literal("regex"),
    pattern: Pattern,
    close_on_length: closeOnLength,
  }),
  Schema.Struct({
    type: Schema.Literal("grammar"),
    grammar: Grammar,
    close_on_length: closeOnLength,
  }),
]).annotate({ identifier: "ResponseFormat" })
type ResponseFormat = typeof ResponseFormat.Type

const closing = (close: boolean | null | undefined) => close === true && { closeOnLength: true }

/** Returns what `response_format` asks for; undefined: any text. */
export const askedFormat = (format: ResponseFormat | null | undefined): Format | undefined => {
  switch (format?.type) {
    case "json_object":
      return { type: "json_object", ...closing(format.close_on_length) }
    case "json_schema": {
      const { schema, strict, close_on_length } = format.json_schema
      return { type: "json_schema", schema, strict: strict === true, ...closing(close_on_length) }
    }
    case "regex": {
      const { pattern, close_on_length } = format
      const param = "response_format.pattern"
      return { type: "regex", pattern, param, ...closing(close_on_length) }
    }
    case "grammar": {
      const { grammar, close_on_length } = format
      const param = "response_format.grammar"
      return { type: "grammar", lark: grammar, param, ...closing(close_on_length) }
    }
    default:
      return undefined
  }
}
