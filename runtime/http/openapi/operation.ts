import type { Json } from "../../../core/json.ts"
import { defaultBounds, type Endpoint, maxDepth } from "../../../core/ports/endpoint.ts"
import { errorResponses, isDownload, isPlainBytes } from "./error-responses.ts"
import { pascal } from "./named-objects.ts"
import type { SchemaBook } from "./schemas.ts"

const ref = (kind: "headers" | "parameters", name: string) => ({
  $ref: `#/components/${kind}/${name}`,
})

export const pathParams = (path: string): readonly string[] =>
  [...path.matchAll(/\{([^}]+)\}/g)].map((match) => match[1]!)

/** `chat.completions` -> `chatCompletions`: an identifier in every language. */
const operationIdOf = ({ id }: Endpoint, path: string, index: number): string => {
  const name = pascal(id)
  const alias = index === 0 ? "" : pascal(/^\/(v\d+)\//.exec(path)?.[1] ?? `alias${index}`)
  return name.charAt(0).toLowerCase() + name.slice(1) + alias
}

export const tagOf = ({ id }: Endpoint): string => id.split(".")[0]!

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, { readonly description?: string }>>
  readonly required?: readonly string[]
}

const queryParameters = ({ query }: Endpoint, book: SchemaBook): readonly Json[] => {
  if (!query) return []
  const { properties = {}, required = [] } = book.plain(query) as ObjectSchema
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: "query",
    required: required.includes(name),
    ...(description && { description }),
    schema,
  }))
}

/** `/v1/files/{id}` -> `/v1/files` */
const listOf = (path: string, name: string) => path.slice(0, path.indexOf(`/{${name}}`))

/** What only spends can be tried without. */
const takesDryRun = ({ access, method }: Endpoint) => access === "key" && method !== "GET"

const parameters = (endpoint: Endpoint, path: string, book: SchemaBook): readonly Json[] => [
  ...pathParams(path).map((name) => ({
    name,
    in: "path",
    required: true,
    description: `One of \`${listOf(path, name)}\`.`,
    schema: { type: "string" },
  })),
  ...queryParameters(endpoint, book),
  ref("parameters", "RequestId"),
  ...(takesDryRun(endpoint) ? [ref("parameters", "DryRun")] : []),
  ...(endpoint.creates ? [ref("parameters", "IdempotencyKey")] : []),
  ...(isDownload(endpoint) ? [ref("parameters", "Range")] : []),
  ...(isPlainBytes(endpoint) ? [ref("parameters", "IfNoneMatch")] : []),
]

/** What a body may hold, in words. */
const limitsOf = ({
  access,
  body,
  maxBodyBytes,
  maxTextBytes,
  bounds = defaultBounds,
}: Endpoint): string => {
  if (body === "multipart") return `At most ${maxBodyBytes} bytes.`
  if (body === "bytes") return `At most ${maxBodyBytes} bytes; gzip is accepted.`
  const text = maxTextBytes === undefined ? "" : ` (${maxTextBytes} of them outside of data URIs)`
  const ofKey = access === "key" ? ", or the key's `limits.body_mb` where that is less" : ""
  return `At most ${maxBodyBytes} bytes${text}${ofKey}; gzip is accepted. At most ${bounds.keys} keys (${bounds.keysOfObject} of one object), ${bounds.values} objects, arrays and strings, ${bounds.elements} values, and ${maxDepth} levels.`
}

/** The content of the request body, by media type. */
const mediaOf = (
  { id, body, form, readForm }: Endpoint,
  book: SchemaBook,
): Readonly<Record<string, Json>> | undefined => {
  if (body === "none") return undefined
  if (body === "bytes" && form)
    return { "application/json": { schema: book.of(form, `${pascal(id)}Request`) } }
  if (body === "bytes") return { "application/octet-stream": { schema: binary } }
  const ofForm = {
    "multipart/form-data": { schema: form ? book.of(form, `${pascal(id)}Form`) : {} },
  }
  if (body === "multipart") return ofForm
  const schema = book.of(body, `${pascal(id)}Request`)
  return { "application/json": { schema }, ...(readForm && ofForm) }
}

// JSON Schema has no bytes; this is what generators know
const binary = { type: "string", format: "binary" }
/** The content of a reply in bytes; where a text is what is meant, generators read it as one. */
const bytesOf = ({ mediaTypes = [], reply }: Endpoint): Json => {
  const isForText = reply !== undefined || mediaTypes[0]?.startsWith("text/") === true
  return Object.fromEntries(
    mediaTypes.map((type) => [
      type.split(";")[0]!,
      { schema: isForText && type.startsWith("text/") ? { type: "string" } : binary },
    ]),
  )
}

const requestBody = (endpoint: Endpoint, book: SchemaBook): Json => {
  const content = mediaOf(endpoint, book)
  if (!content) return {}
  const description = limitsOf(endpoint)
  return {
    requestBody: { required: true, description, content },
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

const replyHeaders = (endpoint: Endpoint) => ({
  "X-Request-ID": ref("headers", "RequestId"),
  ...(endpoint.access === "key" && meteredHeaders),
  ...(endpoint.creates && { "Idempotent-Replayed": ref("headers", "Replayed") }),
  ...(isPlainBytes(endpoint) && { ETag: ref("headers", "ETag") }),
  ...(isDownload(endpoint) && { "Content-Disposition": ref("headers", "Disposition") }),
})

const dryRunOr = (endpoint: Endpoint, schema: Json): Json =>
  takesDryRun(endpoint) ? { anyOf: [schema, { $ref: "#/components/schemas/DryRun" }] } : schema

/**
 * OpenAPI 3.1 can't describe a sequence of events: the schema is that of one. Where there is
 * nothing else, generators would read the whole answer as one, so it is a text there.
 */
const eventsSchema = (
  { id, reply }: Endpoint,
  event: NonNullable<Endpoint["event"]>,
  book: SchemaBook,
): Json => {
  const one = book.of(event, `${pascal(id)}Event`)
  if (reply) return one
  return { type: "string", contentMediaType: "application/json", contentSchema: one }
}

const success = (endpoint: Endpoint, book: SchemaBook): Json => {
  const { id, reply, event } = endpoint
  const content = {
    ...(reply && {
      "application/json": { schema: dryRunOr(endpoint, book.of(reply, `${pascal(id)}Reply`)) },
    }),
    ...(event && { "text/event-stream": { schema: eventsSchema(endpoint, event, book) } }),
    ...(bytesOf(endpoint) as object),
  }
  return {
    description:
      event && reply
        ? "The answer; with `stream` each event is one `data:` line of this schema, and the last line is `data: [DONE]`."
        : "The answer.",
    headers: replyHeaders(endpoint),
    ...(Object.keys(content).length > 0 && { content }),
  }
}

const partOf = (endpoint: Endpoint): Json => ({
  description: "The part that `Range` asks for.",
  headers: { ...replyHeaders(endpoint), "Content-Range": ref("headers", "ContentRange") },
  content: bytesOf(endpoint),
})

const elsewhere = (endpoint: Endpoint): Json => ({
  description:
    "The bytes are at `Location` for a short time, without the key; only where the deployment hands out signed links, and never for a request with conditions or from a page.",
  headers: {
    "X-Request-ID": ref("headers", "RequestId"),
    ...(endpoint.access === "key" && meteredHeaders),
    Location: ref("headers", "Location"),
  },
})

const unchanged = (endpoint: Endpoint): Json => ({
  description: "The bytes are those of `If-None-Match`.",
  headers: replyHeaders(endpoint),
})

const successes = (endpoint: Endpoint, book: SchemaBook): Json => ({
  [endpoint.status ?? 200]: success(endpoint, book),
  ...(isDownload(endpoint) && { 206: partOf(endpoint) }),
  ...(isDownload(endpoint) && { 302: elsewhere(endpoint) }),
  ...(isPlainBytes(endpoint) && { 304: unchanged(endpoint) }),
})

const schemeOf = { key: "apiKey", session: "session", admin: "admin" } as const

const security = ({ access }: Endpoint): Json =>
  access === "public" ? [] : [{ [schemeOf[access]]: [] }]

/** `index` above 0 is an alias: operation ids must be unique. */
export const operationOf = (
  endpoint: Endpoint,
  path: string,
  index: number,
  book: SchemaBook,
): Json => ({
  operationId: operationIdOf(endpoint, path, index),
  summary: endpoint.summary,
  ...(index > 0 && { description: `The same as \`${endpoint.method} ${endpoint.path}\`.` }),
  tags: [tagOf(endpoint)],
  security: security(endpoint),
  parameters: parameters(endpoint, path, book),
  ...(requestBody(endpoint, book) as object),
  responses: { ...(successes(endpoint, book) as object), ...errorResponses(endpoint) },
})
