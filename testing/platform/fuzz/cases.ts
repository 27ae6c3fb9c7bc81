import { gzipSync } from "node:zlib"
import type { Json } from "../../../core/json.ts"
import type { JsonSchema, Operation } from "./document.ts"
import { fileNameOf, hintAt, madeCoherent, type Place, uploadBytes } from "./hints.ts"
import { kindBefore } from "./known-objects.ts"
import type { Random } from "./random.ts"
import type { Sent } from "./send.ts"
import { makeValue } from "./values.ts"
import { type Actor, everybody, type World } from "./world.ts"

export interface Part {
  readonly name: string
  readonly filename?: string
  readonly mediaType?: string
  readonly content: string
}

export type BodyForm =
  | { readonly json: Json }
  | { readonly parts: readonly Part[] }
  | { readonly bytes: Buffer }

export type Header = readonly [name: string, value: string]

/** A request in parts, so that a failing one can be made smaller. */
export interface Case {
  readonly operation: Operation
  readonly actor: Actor
  readonly method: string
  readonly path: string
  readonly query: readonly (readonly [string, string])[]
  readonly headers: readonly Header[]
  readonly body: BodyForm | undefined
}

const boundary = "fuzz-boundary-7d1c"

const multipartOf = (parts: readonly Part[]): Buffer =>
  Buffer.from(
    parts
      .map(({ name, filename, mediaType, content }) => {
        const file = filename === undefined ? "" : `; filename="${filename}"`
        const type = mediaType ? `Content-Type: ${mediaType}\r\n` : ""
        return `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n${type}\r\n${content}\r\n`
      })
      .concat(`--${boundary}--\r\n`)
      .join(""),
  )

const bytesOf = (body: BodyForm): { readonly bytes: Buffer; readonly type: string | undefined } => {
  if ("json" in body)
    return { bytes: Buffer.from(JSON.stringify(body.json)), type: "application/json" }
  if ("parts" in body)
    return { bytes: multipartOf(body.parts), type: `multipart/form-data; boundary=${boundary}` }
  return { bytes: body.bytes, type: undefined }
}

export const encode = ({ actor, method, path, query, headers, body }: Case): Sent => {
  const encoded = body && bytesOf(body)
  const all: Header[] = [
    ...(actor.credential ? [["authorization", `Bearer ${actor.credential}`] as const] : []),
    ...headers,
  ]
  const has = (name: string) => all.some(([one]) => one.toLowerCase() === name)
  if (encoded?.type && !has("content-type")) all.push(["content-type", encoded.type])
  const isPacked = all.some(([name, value]) => name === "content-encoding" && value === "gzip")
  const grouped: Record<string, string | string[]> = {}
  for (const [name, value] of all) {
    const before = grouped[name]
    grouped[name] = before === undefined ? value : [before, value].flat()
  }
  const text = query.map(([name, value]) => `${name}=${value}`).join("&")
  return {
    method,
    target: text ? `${path}?${text}` : path,
    headers: grouped,
    body: encoded && (isPacked ? gzipSync(encoded.bytes) : encoded.bytes),
  }
}

const jsonOf = (place: Place, schema: JsonSchema): Json => {
  const { random, world } = place
  const maker = { random, resolve: world.document.resolve, hint: hintAt(place) }
  return madeCoherent(place, makeValue(maker, schema, "", 0))
}

/** Lines of a batch: requests to an endpoint that takes them, as the document describes it. */
const batchLines = (place: Place): Part => {
  const { operations } = place.world.document
  const targets = operations.filter(({ path }) =>
    ["/v1/chat/completions", "/v1/embeddings", "/v1/rerank"].includes(path),
  )
  const operation = place.random.pick(targets)
  const schema = operation.body["application/json"]?.schema ?? {}
  const lines = Array.from({ length: place.random.int(1, 4) }, (_, i) => {
    const body = { ...(jsonOf({ ...place, operation }, schema) as object), stream: undefined }
    return JSON.stringify({ custom_id: `line-${i}`, method: "POST", url: operation.path, body })
  })
  return {
    name: "file",
    filename: fileNameOf(operation.path),
    mediaType: "application/jsonl",
    content: lines.join("\n"),
  }
}

const isFile = (schema: JsonSchema) =>
  schema.format === "binary" || "contentMediaType" in schema || "contentEncoding" in schema

const partsOf = (place: Place, schema: JsonSchema): readonly Part[] => {
  const required = new Set((schema.required ?? []) as readonly string[])
  const properties = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>)
  return properties
    .filter(([name]) => required.has(name) || place.random.chance(0.2))
    .map(([name, given]) => {
      const one = place.world.document.resolve(given)
      if (isFile(one))
        return name === "file"
          ? batchLines(place)
          : { name, filename: "blob", content: "x".repeat(uploadBytes) }
      const value = jsonOf(place, { type: "object", properties: { [name]: one }, required: [name] })
      const field = (value as Record<string, Json>)[name]
      return { name, content: typeof field === "string" ? field : JSON.stringify(field) }
    })
    .toSorted((a, b) => Number("filename" in a) - Number("filename" in b))
}

const bodyOf = (place: Place): BodyForm | undefined => {
  const { body } = place.operation
  const json = body["application/json"]
  if (json) return { json: jsonOf(place, json.schema ?? {}) }
  const form = body["multipart/form-data"]
  if (form) return { parts: partsOf(place, place.world.document.resolve(form.schema ?? {})) }
  return Object.keys(body).length > 0 ? { bytes: Buffer.from("some bytes") } : undefined
}

/** A path with ids of objects that the actor has; the last one's parent stands before it. */
const pathOf = (
  operation: Operation,
  actor: Actor,
  world: World,
  random: Random,
): { readonly path: string; readonly parent: string | undefined } => {
  const names = [...operation.path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!)
  const owner = actor.owner ?? everybody
  const changes = operation.method !== "GET"
  const objectFor = (name: string) => {
    const kind = kindBefore(operation.path, name)
    const own = world.known.of(operation.access === "public" ? everybody : owner, kind)
    // a name with a folder belongs to another template
    const free = own.filter(({ id }) => !id.includes("/") && !(changes && world.kept.has(id)))
    return free.length > 0 ? random.pick(free) : undefined
  }
  const last = names.length > 0 ? objectFor(names.at(-1)!) : undefined
  const ids = names.map((name, i) =>
    i === names.length - 1 ? last?.id : (last?.parent ?? objectFor(name)?.id),
  )
  const path = names.reduce(
    (path, name, i) => path.replace(`{${name}}`, ids[i] ?? "none-yet"),
    operation.path,
  )
  return { path, parent: ids[0] }
}

const queryOf = (place: Place): Case["query"] =>
  place.operation.parameters
    .filter((one) => one.in === "query" && place.random.chance(0.4))
    .map(({ name, schema }) => {
      const object = { type: "object", properties: { [name]: schema }, required: [name] }
      const value = (jsonOf(place, object) as Record<string, Json>)[name]
      return [name, encodeURIComponent(typeof value === "string" ? value : JSON.stringify(value))]
    })

const headersOf = ({ operation, random }: Place, index: number): readonly Header[] => {
  const takes = (name: string) =>
    operation.parameters.some((one) => one.in === "header" && one.name.toLowerCase() === name)
  const key = random.chance(0.5) ? `key-${random.int(1, 20)}` : `key-of-${index}`
  return [
    ...(random.chance(0.2) ? [["x-request-id", `request-${index}`] as const] : []),
    ...(takes("x-dry-run") && random.chance(0.1) ? [["x-dry-run", "1"] as const] : []),
    ...(takes("idempotency-key") && random.chance(0.15) ? [["idempotency-key", key] as const] : []),
    ...(random.chance(0.03) ? [["content-encoding", "gzip"] as const] : []),
  ]
}

/** A request as a good client of the actor would make it. */
export const goodCase = (
  world: World,
  operation: Operation,
  actor: Actor,
  random: Random,
  index: number,
): Case => {
  const { path, parent } = pathOf(operation, actor, world, random)
  const place: Place = { world, random, operation, actor, parent }
  return {
    operation,
    actor,
    method: operation.method,
    path,
    query: queryOf(place),
    headers: headersOf(place, index),
    body: bodyOf(place),
  }
}
