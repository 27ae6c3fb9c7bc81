import { type ErrorCode, errorRegistry } from "../../../core/errors.ts"
import type { Json } from "../../../core/json.ts"
import type { Endpoint } from "../../../core/ports/endpoint.ts"

type Occurs = (endpoint: Endpoint) => boolean

const always: Occurs = () => true
/** Occurs for other requests to the same path only. */
const elsewhere: Occurs = () => false
const guarded: Occurs = ({ access }) => access !== "public"
/** A sign-in may come with a wrong password, or too often. */
const signing: Occurs = ({ access, method }) => access === "public" && method !== "GET"
/** A change by a session may not be allowed in the present state. */
const changing: Occurs = ({ access, method }) =>
  (access === "session" || access === "admin") && method !== "GET"
const metered: Occurs = ({ access }) => access === "key"
const withBody: Occurs = ({ body }) => body !== "none"
const withJson: Occurs = ({ body }) => typeof body !== "string"
const withBytes: Occurs = ({ body }) => body === "bytes" || body === "multipart"
/** A message that another server signs: it names its object in the body, and may come twice. */
const signed: Occurs = ({ access, body, form }) =>
  access === "public" && body === "bytes" && form !== undefined
const withId: Occurs = ({ path, aliases = [] }) =>
  [path, ...aliases].some((one) => one.includes("{"))
const creating: Occurs = (endpoint) => endpoint.creates === true
/** Events of what happens elsewhere: for as long as somebody looks. */
const isWatch: Occurs = ({ access, event }) => access === "session" && event !== undefined
/** Nothing but bytes, which have a tag. */
export const isPlainBytes: Occurs = ({ mediaTypes, reply }) => mediaTypes !== undefined && !reply
/** Bytes that a client saves, of which it may ask for a part. */
export const isDownload: Occurs = (endpoint) =>
  isPlainBytes(endpoint) && endpoint.path.endsWith("/content")
/** An endpoint value does not name its models: any call that takes JSON with a key may use one. */
const withModel: Occurs = (endpoint) => metered(endpoint) && withJson(endpoint)

/**
 * Which endpoints can return a code. A new code of the registry does not compile until it has its
 * line here.
 */
const occurs: Readonly<Record<ErrorCode, Occurs>> = {
  invalid_json: withJson,
  invalid_request_error: always,
  invalid_http: always,
  model_not_found: withModel,
  unsupported_parameter: withModel,
  context_length_exceeded: withModel,
  content_policy_violation: withModel,
  unsupported_file_type: withBytes,
  authentication_error: (endpoint) => guarded(endpoint) || signing(endpoint),
  insufficient_quota: metered,
  email_not_verified: metered,
  account_suspended: (endpoint) => metered(endpoint) || changing(endpoint),
  read_only_session: (endpoint) => guarded(endpoint) && endpoint.method !== "GET",
  permission_denied: guarded,
  origin_not_allowed: metered,
  // a body may name an object, too
  not_found: (endpoint) => withId(endpoint) || withModel(endpoint) || signed(endpoint),
  method_not_allowed: elsewhere,
  request_timeout: always,
  conflict: (endpoint) =>
    signed(endpoint) ||
    creating(endpoint) ||
    changing(endpoint) ||
    (guarded(endpoint) && withId(endpoint)),
  precondition_failed: isPlainBytes,
  payload_too_large: withBody,
  storage_quota_exceeded: withBytes,
  uri_too_long: always,
  unsupported_media_type: withBody,
  range_not_satisfiable: isDownload,
  text_too_long: withModel,
  instruction_with_image: withModel,
  schema_not_satisfied: withModel,
  // mails and sign-ins are limited too
  rate_limit_error: (endpoint) => metered(endpoint) || signing(endpoint) || changing(endpoint),
  // large bodies of one account, too
  concurrency_exceeded: (endpoint) => metered(endpoint) || withBody(endpoint) || isWatch(endpoint),
  backend_busy: withBody,
  headers_too_large: always,
  internal_error: always,
  backend_error: withModel,
  server_busy: always,
  database_unavailable: always,
  storage_unavailable: guarded,
  model_loading: withModel,
  server_starting: always,
  backend_timeout: withModel,
  storage_full: (endpoint) => guarded(endpoint) || signing(endpoint),
}

export const codesOf = (endpoint: Endpoint): readonly ErrorCode[] =>
  (Object.keys(occurs) as ErrorCode[]).filter((code) => occurs[code](endpoint))

const ref = (name: string) => ({ $ref: `#/components/headers/${name}` })

const errorResponse = (status: number, codes: readonly ErrorCode[]): Json => ({
  description: codes.map((code) => `\`${code}\`: ${errorRegistry[code].about}`).join(" "),
  headers: {
    "X-Request-ID": ref("RequestId"),
    // a 409 has them where the conflict passes by itself
    ...([409, 429, 503, 507].includes(status) && {
      "Retry-After": ref("RetryAfter"),
      "retry-after-ms": ref("RetryAfterMs"),
    }),
  },
  content: {
    "application/json": {
      schema: { $ref: "#/components/schemas/ErrorEnvelope" },
    },
  },
})

/** One response for each status, which lists the codes that share it. */
export const errorResponses = (endpoint: Endpoint): Readonly<Record<string, Json>> => {
  const byStatus = new Map<number, ErrorCode[]>()
  for (const code of codesOf(endpoint)) {
    const { status } = errorRegistry[code]
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [String(status), errorResponse(status, codes)]),
  )
}

export const errorSchemas: Readonly<Record<string, Json>> = {
  ErrorEnvelope: {
    type: "object",
    description:
      "The body of every reply that is not 2xx, and the last event of a stream that failed.",
    required: ["error", "request_id"],
    properties: {
      error: { $ref: "#/components/schemas/ErrorDetail" },
      request_id: { type: "string" },
    },
  },
  ErrorDetail: {
    type: "object",
    required: ["message", "type", "code", "param"],
    properties: {
      message: { type: "string" },
      type: {
        type: "string",
        enum: [...new Set(Object.values(errorRegistry).map(({ type }) => type))],
      },
      code: { type: "string", enum: Object.keys(errorRegistry) },
      param: { type: ["string", "null"], description: "The field, as in `messages[0].content`." },
    },
  },
}
