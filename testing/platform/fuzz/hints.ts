import type { Json } from "../../../core/json.ts"
import type { JsonSchema, Operation } from "./document.ts"
import { kindOf } from "./known-objects.ts"
import type { Random } from "./random.ts"
import { type Actor, password, type World } from "./world.ts"

/** Where a value is needed. */
export interface Place {
  readonly world: World
  readonly random: Random
  readonly operation: Operation
  readonly actor: Actor
  /** The object that the path names. */
  readonly parent: string | undefined
}

const batchTargets = ["/v1/chat/completions", "/v1/embeddings", "/v1/rerank"]

const schemas: readonly Json[] = [
  { type: "object", properties: { a: { type: "string" } }, required: ["a"] },
  { type: "object", properties: { n: { type: "integer", minimum: 1 } } },
  { type: "array", items: { enum: [1, 2] } },
  { anyOf: [{ type: "null" }, { $ref: "#/$defs/x" }], $defs: { x: { type: "boolean" } } },
  { type: "object", patternProperties: { "^a(b|c)*$": { pattern: "^x+$" } } },
  true,
]

/** A PNG of one pixel. */
const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="

export const uploadBytes = 64

const knownIds = ({ world, actor, parent }: Place, kind: string, ofParent = false) =>
  actor.owner
    ? world.known
        .of(actor.owner, kind)
        .filter((one) => !ofParent || one.parent === parent)
        .map(({ id }) => id)
    : []

const oneOf = ({ random }: Place, list: readonly string[]): string =>
  list.length > 0 ? random.pick(list) : "none-yet"

const modelFor = (place: Place): string => {
  const { models } = place.world
  const fit = models.filter(({ capabilities }) =>
    capabilities.some((word) => place.operation.path.includes(word)),
  )
  return oneOf(
    place,
    (fit.length > 0 ? fit : models).map(({ id }) => id),
  )
}

const filesFor = ({ actor, world }: Place, purpose: string): readonly string[] =>
  (actor.owner ? world.known.of(actor.owner, "file") : [])
    .filter(({ fields }) => fields.purpose === purpose)
    .map(({ id }) => id)

const inputFile = (place: Place): string => oneOf(place, filesFor(place, "batch_input"))

/** What fields hold in real use, by name: a schema says less than its users know. */
const values: Readonly<Record<string, (place: Place) => Json>> = {
  model: modelFor,
  input_file_id: inputFile,
  file_ids: (place) => [oneOf(place, filesFor(place, "knowledge"))],
  part_ids: (place) => knownIds(place, "upload.part", true).slice(0, 1),
  endpoint: (place) => place.random.pick(batchTargets),
  url: ({ world }) => world.receiver.url,
  events: ({ random }) => random.pick([["batch.completed"], ["batch.completed", "batch.failed"]]),
  email: ({ random }) => `p${random.int(1, 40)}@example.com`,
  password: () => password,
  token: (place) => {
    const purpose = place.operation.path.endsWith("reset") ? "reset" : "verify"
    return oneOf(place, place.world.mailTokens(purpose))
  },
  purpose: ({ random }) => random.pick(["batch_input", "batch_input", "batch", "knowledge"]),
  bytes: () => uploadBytes,
  filename: ({ random }) => random.pick(["a.jsonl", "b.txt", "c.md"]),
  mime_type: ({ random }) => random.pick(["application/jsonl", "text/plain"]),
  role: ({ random, operation }) =>
    operation.access === "admin" ? "user" : random.pick(["system", "user", "user", "assistant"]),
  amount_idr: ({ random }) => random.pick([1, 0.000001, 1.5, -0.5, 100]),
  currency: () => "IDR",
  reason: () => "a test",
  scopes: ({ random }) => random.pick([["*"], ["embeddings"], ["chat.completions", "rerank"]]),
  name: ({ random }) => random.pick(["lookup", "sum", "k1"]),
  arguments: () => "{}",
  monthly_cap_idr: () => 1000,
  image: () => pixel,
  image_url: () => `data:image/png;base64,${pixel}`,
  schema: ({ random }) => random.pick(schemas),
  parameters: ({ random }) => random.pick(schemas.slice(0, 2)),
  max_tokens: ({ random }) => random.int(1, 20),
  max_completion_tokens: ({ random }) => random.int(1, 20),
  from: ({ random }) => random.pick(["2026-01-31", "0", "1795000000"]),
  to: ({ random }) => random.pick(["2030-01-31", "1999999999"]),
  group_by: ({ random }) => random.pick(["day", "model,key", "endpoint"]),
  account: (place) => oneOf(place, knownIds(place, "account")),
  after: (place) => oneOf(place, knownIds(place, kindOf(place.operation.path))),
}

export const hintAt =
  (place: Place) =>
  (field: string, schema: JsonSchema): Json | undefined => {
    const known = values[field]
    if (!known || (Array.isArray(schema.enum) && field !== "role")) return undefined
    // the schema decides over the kind of value: a property may only share the name
    const type = JSON.stringify([schema.type, schema.anyOf, schema.oneOf])
    const value = known(place)
    const kind = Array.isArray(value) ? "array" : typeof value
    const isFit = type.includes(kind) || kind === "object" || type === "[null,null,null]"
    if (Array.isArray(schema.enum) && !schema.enum.includes(value)) return undefined
    return isFit || (kind === "number" && type.includes("integer")) ? value : undefined
  }

/** Only an assistant's message has thoughts and calls of tools, which other messages answer. */
const plainMessage = (message: Json): Json => {
  const {
    tool_calls: _,
    tool_call_id: __,
    reasoning_content,
    content,
    ...rest
  } = message as Record<string, Json>
  const isText = !JSON.stringify(content ?? "").includes("image_url")
  return {
    ...rest,
    ...(rest.role === "assistant" && reasoning_content ? { reasoning_content } : {}),
    content: isText && content ? content : "hello",
  }
}

/** What fields must be to each other, which a schema does not say. */
export const madeCoherent = ({ world, actor }: Place, body: Json): Json => {
  if (typeof body !== "object" || body === null || Array.isArray(body)) return body
  const fields: Record<string, Json> = { ...(body as Record<string, Json>) }
  if (Array.isArray(fields.messages)) {
    fields.messages = fields.messages.map(plainMessage)
    if (!fields.tools) delete fields.tool_choice
    if (fields.max_tokens) delete fields.max_completion_tokens
    if (fields.top_logprobs) fields.logprobs = true
    if (fields.stream !== true) delete fields.stream_options
  }
  const input = actor.owner
    ? world.known.of(actor.owner, "file").find(({ id }) => id === fields.input_file_id)
    : undefined
  const target = batchTargets.find((path) => input?.fields.filename === fileNameOf(path))
  if (target) fields.endpoint = target
  return fields
}

/** The name says which endpoint the lines of an input file are for. */
export const fileNameOf = (target: string): string =>
  `${target.slice(1).replaceAll("/", "-")}.jsonl`
