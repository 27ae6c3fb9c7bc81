import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js"
import type { Json } from "../../../core/json.ts"
import type { Case } from "./cases.ts"
import type { ApiDocument, Operation } from "./document.ts"
import type { Answer, Sent } from "./send.ts"
import { foreignTextIn } from "./tenancy.ts"
import type { World } from "./world.ts"

/** A request with its reply. */
export interface Exchange {
  readonly one: Case
  readonly sent: Sent
  readonly answer: Answer
  /** What the request line reached: not always what the request was made for. */
  readonly operation: Operation | undefined
  readonly isKnownPath: boolean
}

/** What is wrong with a reply: which rule, and what was seen. */
export interface Fault {
  readonly rule: string
  readonly about: string
}

type Rule = (exchange: Exchange, world: World, schemas: Schemas) => readonly string[]

export interface Schemas {
  /** Validates a body against the schema of an operation's reply; undefined: there is no schema. */
  validator(operation: Operation, status: number, media: string): ValidateFunction | undefined
  readonly envelope: ValidateFunction
  readonly dryRun: ValidateFunction
}

const pointer = (parts: readonly string[]) =>
  parts
    .map((part) => encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1")))
    .join("/")

export const makeSchemas = ({ json, operations }: ApiDocument): Schemas => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false, validateSchema: false })
  ajv.addSchema(json as object, "api")
  const made = new Map<string, ValidateFunction>()
  const compile = (path: string) => {
    const validate = made.get(path) ?? ajv.compile({ $ref: `api#/${path}` })
    made.set(path, validate)
    return validate
  }
  return {
    envelope: compile("components/schemas/ErrorEnvelope"),
    dryRun: compile("components/schemas/DryRun"),
    validator: ({ path, method, replies }, status, media) => {
      const item = operations.some((one) => one.path === path)
      const schema = replies[status]?.content?.[media]?.schema
      if (!item || !schema) return undefined
      // a text whose lines are events
      const inner = "contentSchema" in (schema as object) ? ["contentSchema"] : []
      const response = ["paths", path, method.toLowerCase(), "responses", String(status)]
      return compile(pointer([...response, "content", media, "schema", ...inner]))
    },
  }
}

const mediaOf = ({ headers }: Answer) => (headers["content-type"] ?? "").split(";")[0]!.trim()
const hasBody = ({ sent, answer }: Exchange) =>
  sent.method !== "HEAD" && answer.status !== 304 && answer.status !== 204
const isGood = ({ status }: Answer) => status >= 200 && status < 300

export const jsonIn = (text: string): Json | undefined => {
  try {
    return JSON.parse(text) as Json
  } catch {
    return undefined
  }
}

const complaints = (validate: ValidateFunction, value: unknown): readonly string[] =>
  validate(value)
    ? []
    : [
        (validate.errors ?? [])
          .slice(0, 3)
          .map((e) => `${e.instancePath} ${e.message}`)
          .join("; "),
      ]

const neverFails: Rule = ({ answer }) => (answer.status >= 500 ? [`${answer.status}`] : [])

/** What no operation is at answers with one of these. */
const elsewhere = new Set([400, 404, 405, 408, 414, 431])

const hasDocumentedStatus: Rule = ({ sent, answer, operation, isKnownPath }) => {
  if (operation) return operation.replies[answer.status] ? [] : [`${answer.status}`]
  if (sent.method === "OPTIONS" && answer.status === 204)
    return answer.headers.allow ? [] : ["204 without Allow"]
  if (isKnownPath && answer.status === 405 && !answer.headers.allow) return ["405 without Allow"]
  return elsewhere.has(answer.status) ? [] : [`${answer.status} where no operation is`]
}

const hasDocumentedType: Rule = (exchange) => {
  const { answer, operation } = exchange
  const reply = operation?.replies[answer.status]
  if (!reply || !hasBody(exchange) || answer.body.length === 0) return []
  const types = Object.keys(reply.content ?? {})
  const media = mediaOf(answer)
  const fits = types.some((type) => type === "*/*" || type === media)
  return fits ? [] : [`${answer.status} ${media} is not one of ${types.join(", ") || "none"}`]
}

const dryRun = '{"object":"dry_run"'

const fitsItsSchema: Rule = (exchange, _, schemas) => {
  const { sent, answer, operation } = exchange
  if (!operation || !hasBody(exchange) || mediaOf(answer) !== "application/json") return []
  const reply = schemas.validator(operation, answer.status, "application/json")
  if (!reply) return []
  const json = jsonIn(answer.body.toString())
  if (json === undefined) return ["the body is no JSON"]
  // a dry run is an answer of its own, also where it is of no use
  const isDry =
    isGood(answer) && sent.headers["x-dry-run"] && JSON.stringify(json).startsWith(dryRun)
  const validate = isDry ? schemas.dryRun : reply
  return complaints(validate, json).map((text) => `${answer.status} ${text}`)
}

const eventsFitTheirSchema: Rule = (exchange, _, schemas) => {
  const { answer, operation } = exchange
  if (!operation || mediaOf(answer) !== "text/event-stream" || !hasBody(exchange)) return []
  const validate = schemas.validator(operation, answer.status, "text/event-stream")
  const lines = answer.body
    .toString()
    .split("\n")
    .filter((line) => line.startsWith("data: "))
    .map((line) => line.slice("data: ".length))
  const events = lines.filter((line) => line !== "[DONE]").map(jsonIn)
  const failed = events.some((event) => JSON.stringify(event ?? "").startsWith('{"error"'))
  const end =
    lines.at(-1) === "[DONE]" || failed || answer.isLeft ? [] : ["the stream ends without [DONE]"]
  return [
    ...end,
    ...events.flatMap((event) => {
      if (event === undefined) return ["an event is no JSON"]
      const isError = typeof event === "object" && event !== null && "error" in event
      const fits = isError ? schemas.envelope : validate
      return fits ? complaints(fits, event) : []
    }),
  ]
}

const errorsAreEnvelopes: Rule = (exchange, _, { envelope }) => {
  const { answer } = exchange
  if (answer.status < 400 || !hasBody(exchange)) return []
  const json = jsonIn(answer.body.toString())
  const wrong = complaints(envelope, json)
  if (wrong.length > 0) return wrong
  const { request_id } = json as Record<string, Json>
  return request_id === answer.headers["x-request-id"] ? [] : ["request_id is not X-Request-ID"]
}

const echoesItsRequestId: Rule = ({ sent, answer }) => {
  const given = sent.headers["x-request-id"]
  const got = answer.headers["x-request-id"]
  if (!got) return ["no X-Request-ID"]
  // what node refuses before it has read the request has an id of its own
  if (answer.status === 431 || answer.status === 408) return []
  const isPlain = typeof given === "string" && /^[\w-]{1,100}$/.test(given)
  return isPlain && got !== given ? ["X-Request-ID is not the request's"] : []
}

/** Headers that the document lists for a status come with it; a stream has some as trailers. */
const hasItsHeaders: Rule = ({ sent, answer, operation }) => {
  const documented = operation?.replies[answer.status]?.headers ?? {}
  if (answer.status >= 300 && answer.status < 429) return []
  return (
    Object.keys(documented)
      .filter((name) => answer.headers[name.toLowerCase()] === undefined)
      // only a replay has the one, only what has run the others
      .filter((name) => !/replayed/i.test(name))
      .filter((name) => !(sent.headers["x-dry-run"] && /cost|timing/i.test(name)))
      .map((name) => `${answer.status} without ${name}`)
  )
}

const letsNobodyIn: Rule = ({ one, answer, operation }) => {
  if (!operation || !isGood(answer) || operation.access === "public") return []
  const { access } = one.actor
  const isAllowed =
    access === operation.access || (access === "admin" && operation.access === "session")
  return isAllowed ? [] : [`${one.actor.name} got ${answer.status} of ${operation.access}`]
}

const keepsSecrets: Rule = ({ one, sent, answer, operation }, world) => {
  const text = answer.body.toString()
  const asked = `${sent.target} ${sent.body?.toString() ?? ""} ${JSON.stringify(sent.headers)}`
  // who signs in says in the body who they are; an administrator sees all
  if (operation?.access === "public" && operation.method === "POST") return []
  if (one.actor.access === "admin") return []
  return foreignTextIn(text, asked, one.actor, world)
}

const rules: Readonly<Record<string, Rule>> = {
  "no 5xx": neverFails,
  "documented status": hasDocumentedStatus,
  "documented content type": hasDocumentedType,
  "schema of the reply": fitsItsSchema,
  "schema of events": eventsFitTheirSchema,
  "error envelope": errorsAreEnvelopes,
  "request id": echoesItsRequestId,
  headers: hasItsHeaders,
  access: letsNobodyIn,
  tenancy: keepsSecrets,
}

export const faultsOf = (exchange: Exchange, world: World, schemas: Schemas): readonly Fault[] =>
  Object.entries(rules).flatMap(([rule, check]) =>
    check(exchange, world, schemas).map((about) => ({ rule, about })),
  )
