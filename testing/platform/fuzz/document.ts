import type { Json } from "../../../core/json.ts"

export type JsonSchema = Readonly<Record<string, Json>>

export interface Parameter {
  readonly name: string
  readonly in: "path" | "query" | "header"
  readonly schema: JsonSchema
}

interface Media {
  readonly schema?: JsonSchema
}

interface Reply {
  readonly headers?: Readonly<Record<string, unknown>>
  readonly content?: Readonly<Record<string, Media>>
}

export interface Operation {
  readonly id: string
  readonly method: string
  /** As in the document: `/v1/files/{id}`. */
  readonly path: string
  readonly access: "public" | "key" | "session" | "admin"
  readonly parameters: readonly Parameter[]
  readonly body: Readonly<Record<string, Media>>
  readonly replies: Readonly<Record<string, Reply>>
}

export interface ApiDocument {
  readonly json: JsonSchema
  readonly operations: readonly Operation[]
  /** Follows `$ref` until there is none. */
  resolve(schema: JsonSchema): JsonSchema
  /** The operation that a method and a path as sent reach, and all operations of the path. */
  find(
    method: string,
    path: string,
  ): { readonly at: Operation | undefined; readonly known: boolean }
}

const unescaped = (part: string) => part.replaceAll("~1", "/").replaceAll("~0", "~")

const accessOf = (path: string, security: readonly Json[]): Operation["access"] => {
  if (security.length === 0) return "public"
  if (JSON.stringify(security).includes("apiKey")) return "key"
  return path.startsWith("/admin/") ? "admin" : "session"
}

/** As the server's router matches: a slash at the end changes nothing. */
const matches = (template: string, path: string): boolean => {
  const wanted = template.split("/")
  const given = path.replace(/(?<=.)\/$/, "").split("/")
  return (
    wanted.length === given.length &&
    wanted.every((part, i) => (part.startsWith("{") ? given[i] !== "" : part === given[i]))
  )
}

export const readDocument = (json: JsonSchema): ApiDocument => {
  const lookUp = (ref: string): JsonSchema =>
    ref
      .slice(2)
      .split("/")
      .reduce<Json>((at, part) => (at as JsonSchema)[unescaped(part)] ?? {}, json) as JsonSchema
  const resolve = (schema: JsonSchema): JsonSchema =>
    typeof schema.$ref === "string" ? resolve(lookUp(schema.$ref)) : schema
  const operations = Object.entries(json.paths as Record<string, Record<string, JsonSchema>>)
    .flatMap(([path, item]) => Object.entries(item).map(([method, op]) => ({ path, method, op })))
    .map(({ path, method, op }): Operation => {
      const body = resolve((op.requestBody ?? {}) as JsonSchema)
      const replies = Object.entries(op.responses as Record<string, JsonSchema>)
      return {
        id: op.operationId as string,
        method: method.toUpperCase(),
        path,
        access: accessOf(path, op.security as readonly Json[]),
        parameters: (op.parameters as readonly JsonSchema[]).map(
          (one) => resolve(one) as unknown as Parameter,
        ),
        body: (body.content ?? {}) as Operation["body"],
        replies: Object.fromEntries(
          replies.map(([status, one]) => [status, resolve(one) as Reply]),
        ),
      }
    })
  const find: ApiDocument["find"] = (method, path) => {
    const there = operations.filter((one) => matches(one.path, path))
    // a literal segment wins over a parameter, as in the server's router
    const [best] = there
      .filter((one) => one.method === (method === "HEAD" ? "GET" : method))
      .toSorted((a, b) => a.path.split("{").length - b.path.split("{").length)
    return { at: best, known: there.length > 0 }
  }
  return { json, operations, resolve, find }
}
