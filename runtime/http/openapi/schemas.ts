import { JsonSchema, Schema, SchemaRepresentation } from "effect"
import type { Json } from "../../../core/json.ts"
import { makeNaming } from "./named-objects.ts"

export interface SchemaBook {
  /** The content of `#/components/schemas`. */
  definitions(): Readonly<Record<string, Json>>
  /**
   * The JSON schema of the encoded form; `{}` for a schema that JSON can't express. `name` is for
   * an object without an identifier.
   */
  of(schema: Schema.Top, name: string): Json
  /** The same as it is, where a component makes no sense: the parameters of a query. */
  plain(schema: Schema.Top): Json
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

const emptyBook: SchemaBook = { definitions: () => ({}), of: () => ({}), plain: () => ({}) }

/** Translates all schemas at once, so that those with one identifier share one definition. */
export const makeSchemaBook = (schemas: readonly Schema.Top[]): SchemaBook => {
  const forms = new Map(
    [...new Set(schemas)].flatMap((schema) => {
      const form = wireForm(schema)
      return form ? [[schema, form] as const] : []
    }),
  )
  const [first, ...rest] = [...forms.values()]
  if (!first) return emptyBook
  const document = JsonSchema.toMultiDocumentOpenApi3_1(
    SchemaRepresentation.toJsonSchemaMultiDocument(
      SchemaRepresentation.toRepresentations([first, ...rest]),
    ),
  )
  const places = new Map(
    [...forms.keys()].map((schema, index) => [schema, document.schemas[index] as Json]),
  )
  const naming = makeNaming(document.definitions)
  const plain = (schema: Schema.Top) => places.get(schema) ?? {}
  return {
    definitions: naming.components,
    of: (schema, name) => naming.name(plain(schema), name),
    plain,
  }
}
