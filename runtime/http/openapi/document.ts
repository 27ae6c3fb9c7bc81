import type { Schema } from "effect"
import type { Json } from "../../../core/json.ts"
import type { Endpoint } from "../../../core/ports/endpoint.ts"
import { errorEnvelopeSchema } from "./error-responses.ts"
import { operationOf } from "./operation.ts"
import { makeSchemaBook, type SchemaBook } from "./schemas.ts"

const text = { type: "string" }
const header = (description: string, schema: Json = text) => ({ description, schema })

const headers = {
  RequestId: header("The request's own label, or a made one."),
  CallId: header("Our id of the call, as in usage and ledger rows."),
  CostIdr: header(
    "What the call cost in rupiah, a plain decimal with up to 6 places. A trailer on streams.",
  ),
  ServerTiming: header(
    "Milliseconds of the stages: auth, body, plan, limits, hold, queue, tokenize, prefill, decode, settle, total. A trailer with all of them on streams.",
  ),
  RateLimit: header("Requests that the key may make in any 60 s."),
  RateRemaining: header("How many of them are left."),
  RateReset: header("When all are there again, as in `1s` or `6m0s`."),
  RetryAfter: header("Seconds until a new try makes sense.", { type: "integer", minimum: 1 }),
  RetryAfterMs: header("The same in milliseconds.", { type: "integer", minimum: 1 }),
}

const parameter = (name: string, description: string, schema: Json) => ({
  name,
  in: "header",
  required: false,
  description,
  schema,
})

const parameters = {
  RequestId: parameter("X-Request-ID", "A label of yours; every reply echoes it.", {
    type: "string",
    maxLength: 128,
  }),
  DryRun: parameter(
    "X-Dry-Run",
    "`1`: check the request and say what it would cost at most, without running it.",
    { type: "string", enum: ["1"] },
  ),
  IdempotencyKey: parameter(
    "Idempotency-Key",
    "For 24 h the same key with the same body gives the same reply.",
    { type: "string", maxLength: 255 },
  ),
}

const securitySchemes = {
  apiKey: { type: "http", scheme: "bearer", description: "An API key." },
  session: {
    type: "http",
    scheme: "bearer",
    bearerFormat: "JWT",
    description: "A session of the dashboard.",
  },
}

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

/** The OpenAPI 3.1 document of the endpoints that this deployment has. */
export const describeApi = (about: ApiTitle, endpoints: readonly Endpoint[]): Json => {
  const book = makeSchemaBook(endpoints.flatMap(schemasOf))
  return {
    openapi: "3.1.0",
    info: { title: about.name, version: about.version },
    servers: [{ url: "/" }],
    paths: pathsOf(endpoints, book),
    components: {
      schemas: { ...book.definitions, ErrorEnvelope: errorEnvelopeSchema },
      headers,
      parameters,
      securitySchemes,
    },
  }
}
