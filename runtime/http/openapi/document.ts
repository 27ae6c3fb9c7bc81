import type { Schema } from "effect"
import type { Json } from "../../../core/json.ts"
import type { Endpoint } from "../../../core/ports/endpoint.ts"
import { dryRunSchemas, headers, parameters, securitySchemes } from "./components.ts"
import { errorSchemas } from "./error-responses.ts"
import { operationOf, tagOf } from "./operation.ts"
import { makeSchemaBook, type SchemaBook } from "./schemas.ts"

const schemasOf = ({ body, query, form, reply, event }: Endpoint): readonly Schema.Top[] =>
  [typeof body !== "string" ? (body as Schema.Top) : undefined, query, form, reply, event].filter(
    (schema) => schema !== undefined,
  )

const pathsOf = (endpoints: readonly Endpoint[], book: SchemaBook): Json => {
  const paths: Record<string, Record<string, Json>> = {}
  for (const endpoint of endpoints)
    for (const [index, path] of [endpoint.path, ...(endpoint.aliases ?? [])].entries())
      paths[path] = {
        ...paths[path],
        [endpoint.method.toLowerCase()]: operationOf(endpoint, path, index, book),
      }
  return paths
}

/** The name and version of the deployment. */
export interface ApiTitle {
  readonly name: string
  readonly version: string
}

/**
 * The OpenAPI 3.1 document of the endpoints that this deployment has. `publicUrl`: where clients
 * reach it; where the document came from, if empty.
 */
export const describeApi = (
  about: ApiTitle,
  endpoints: readonly Endpoint[],
  publicUrl = "",
): Json => {
  const book = makeSchemaBook(endpoints.flatMap(schemasOf))
  const paths = pathsOf(endpoints, book)
  const tags = [...new Set(endpoints.map(tagOf))].map((name) => ({ name }))
  return {
    openapi: "3.1.0",
    info: { title: about.name, version: about.version },
    servers: [{ url: publicUrl.replace(/\/$/, "") || "/" }],
    tags,
    paths,
    components: {
      schemas: { ...book.definitions(), ...errorSchemas, ...dryRunSchemas },
      headers,
      parameters,
      securitySchemes,
    },
  }
}
