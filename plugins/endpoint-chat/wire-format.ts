import { Schema } from "effect"
import { atMostCharacters } from "../../core/characters.ts"
import { optional } from "../../core/decode.ts"
import { JsonSchemaBody } from "./json-schema-limits.ts"
import { Name } from "./tool-schema.ts"

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
})

export const ResponseFormat = Schema.Union([
  Schema.Struct({ type: Schema.Literal("text") }),
  Schema.Struct({ type: Schema.Literal("json_object"), close_on_length: closeOnLength }),
  Schema.Struct({ type: Schema.Literal("json_schema"), json_schema: JsonSchemaFormat }),
]).annotate({ identifier: "ResponseFormat" })
export type ResponseFormat = typeof ResponseFormat.Type
