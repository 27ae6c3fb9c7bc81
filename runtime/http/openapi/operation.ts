import type { Json } from "../../../core/json.ts"
import { defaultBounds, type Endpoint, maxDepth } from "../../../core/ports/endpoint.ts"
import { errorResponses } from "./error-responses.ts"
import type { SchemaBook } from "./schemas.ts"

const ref = (kind: "headers" | "parameters", name: string) => ({
  $ref: `#/components/${kind}/${name}`,
})

export const pathParams = (path: string): readonly string[] =>
  [...path.matchAll(/\{([^}]+)\}/g)].map((match) => match[1]!)

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, { readonly description?: string }>>
  readonly required?: readonly string[]
}

const queryParameters = ({ query }: Endpoint, book: SchemaBook): readonly Json[] => {
  if (!query) return []
  const { properties = {}, required = [] } = book.of(query) as ObjectSchema
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: "query",
    required: required.includes(name),
    ...(description && { description }),
    schema,
  }))
}

const parameters = (endpoint: Endpoint, path: string, book: SchemaBook): readonly Json[] => [
  ...pathParams(path).map((name) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  })),
  ...queryParameters(endpoint, book),
  ref("parameters", "RequestId"),
  ...(endpoint.access === "key" ? [ref("parameters", "DryRun")] : []),
  ...(endpoint.creates ? [ref("parameters", "IdempotencyKey")] : []),
]

/** What a JSON body may hold, in words. */
const jsonLimits = ({ maxBodyBytes, maxTextBytes, bounds = defaultBounds }: Endpoint): string => {
  const text = maxTextBytes === undefined ? "" : ` (${maxTextBytes} of them outside of data URIs)`
  return `At most ${maxBodyBytes} bytes${text}; gzip is accepted. At most ${bounds.keys} keys, ${bounds.values} objects, arrays and strings, ${bounds.elements} values, and ${maxDepth} levels.`
}

const requestBody = (endpoint: Endpoint, book: SchemaBook): Json => {
  const { body, maxBodyBytes } = endpoint
  if (body === "none") return {}
  if (body === "bytes")
    return {
      requestBody: {
        required: true,
        description: `At most ${maxBodyBytes} bytes; gzip is accepted.`,
        content: { "application/octet-stream": {} },
      },
    }
  if (body === "multipart")
    return {
      requestBody: {
        required: true,
        description: `At most ${maxBodyBytes} bytes.`,
        content: { "multipart/form-data": {} },
      },
    }
  return {
    requestBody: {
      required: true,
      description: jsonLimits(endpoint),
      content: { "application/json": { schema: book.of(body) } },
    },
  }
}

const meteredHeaders = {
  "X-Call-ID": ref("headers", "CallId"),
  "X-Cost-IDR": ref("headers", "CostIdr"),
  "Server-Timing": ref("headers", "ServerTiming"),
  "x-ratelimit-limit-requests": ref("headers", "RateLimit"),
  "x-ratelimit-remaining-requests": ref("headers", "RateRemaining"),
  "x-ratelimit-reset-requests": ref("headers", "RateReset"),
}

const success = ({ access, reply, event }: Endpoint, book: SchemaBook): Json => {
  const content = {
    ...(reply && { "application/json": { schema: book.of(reply) } }),
    // OpenAPI 3.1 can't describe a sequence of events: the schema is that of one
    ...(event && { "text/event-stream": { schema: book.of(event) } }),
  }
  return {
    description: event
      ? "The answer; with `stream` each event is one `data:` line of this schema, and the last line is `data: [DONE]`."
      : "The answer.",
    headers: {
      "X-Request-ID": ref("headers", "RequestId"),
      ...(access === "key" && meteredHeaders),
    },
    ...(Object.keys(content).length > 0 && { content }),
  }
}

const security = ({ access }: Endpoint): Json => {
  if (access === "public") return []
  return [access === "key" ? { apiKey: [] } : { session: [] }]
}

/** `index` above 0 is an alias: operation ids must be unique. */
export const operationOf = (
  endpoint: Endpoint,
  path: string,
  index: number,
  book: SchemaBook,
): Json => ({
  operationId: index === 0 ? endpoint.id : `${endpoint.id}.alias${index}`,
  summary: endpoint.summary,
  ...(index > 0 && { description: `The same as \`${endpoint.method} ${endpoint.path}\`.` }),
  tags: [endpoint.id.split(".")[0]],
  security: security(endpoint),
  parameters: parameters(endpoint, path, book),
  ...(requestBody(endpoint, book) as object),
  responses: { [endpoint.status ?? 200]: success(endpoint, book), ...errorResponses(endpoint) },
})
