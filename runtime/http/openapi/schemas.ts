import { JsonSchema, Schema, SchemaRepresentation } from "effect"
import type { Json } from "../../../core/json.ts"

export interface SchemaBook {
  /** The content of `#/components/schemas`. */
  readonly definitions: Readonly<Record<string, Json>>
  /** The JSON schema of the encoded form; `{}` for a schema that JSON can't express. */
  of(schema: Schema.Top): Json
}

type Ast = Schema.Top["ast"]

const wireForm = (schema: Schema.Top): Ast | undefined => {
  try {
    const { ast } = Schema.toCodecJson(schema)
    SchemaRepresentation.toJsonSchemaMultiDocument(SchemaRepresentation.toRepresentations([ast]))
    return ast
  } catch {
    // a plugin's schema that can't be translated must not break the whole document
    return undefined
  }
}

/** Translates all schemas at once, so that those with one identifier share one definition. */
export const makeSchemaBook = (schemas: readonly Schema.Top[]): SchemaBook => {
  const forms = new Map(
    [...new Set(schemas)].flatMap((schema) =>
      wireForm(schema) ? [[schema, wireForm(schema)!] as const] : [],
    ),
  )
  const [first, ...rest] = [...forms.values()]
  if (!first) return { definitions: {}, of: () => ({}) }
  const document = JsonSchema.toMultiDocumentOpenApi3_1(
    SchemaRepresentation.toJsonSchemaMultiDocument(
      SchemaRepresentation.toRepresentations([first, ...rest]),
    ),
  )
  const places = new Map(
    [...forms.keys()].map((schema, index) => [schema, document.schemas[index] as Json]),
  )
  return { definitions: document.definitions, of: (schema) => places.get(schema) ?? {} }
}
