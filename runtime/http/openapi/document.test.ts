import { Schema, Stream } from "effect"
import { expect, test } from "vitest"
import { errorRegistry } from "../../../core/errors.ts"
import { PageQuery } from "../../../core/list.ts"
import { defineEndpoint, type Endpoint } from "../../../core/ports/endpoint.ts"
import { Echo, echo, streaming, thing } from "../testing/fixture.ts"
import { describeApi } from "./document.ts"
import { codesOf } from "./error-responses.ts"

interface Operation {
  readonly operationId: string
  readonly security: readonly Record<string, readonly string[]>[]
  readonly parameters: readonly (
    | { readonly $ref: string }
    | { readonly name: string; readonly in: string; readonly required: boolean }
  )[]
  readonly requestBody?: {
    readonly description: string
    readonly content: Record<string, { readonly schema?: unknown }>
  }
  readonly responses: Record<
    string,
    {
      readonly description: string
      readonly content?: Record<string, { readonly schema: unknown }>
    }
  >
}
interface Document {
  readonly openapi: string
  readonly info: { readonly title: string; readonly version: string }
  readonly paths: Record<string, Record<string, Operation>>
  readonly components: {
    readonly schemas: Record<string, unknown>
    readonly securitySchemes: Record<string, unknown>
  }
}

const upload = defineEndpoint({
  ...thing,
  id: "files.create",
  method: "POST",
  path: "/v1/files",
  access: "key",
  body: "bytes",
  creates: true,
  maxBodyBytes: 10,
})
const other = defineEndpoint({
  ...thing,
  id: "other",
  path: "/v1/other",
  reply: Schema.Struct({ echo: Echo }),
})
const odd = defineEndpoint({
  ...thing,
  id: "odd",
  path: "/v1/odd",
  reply: Schema.declare((u): u is Map<string, string> => u instanceof Map),
})
const content = defineEndpoint({
  ...thing,
  id: "files.content",
  path: "/v1/files/{id}/content",
  mediaTypes: ["application/pdf"],
})
const endpoints: readonly Endpoint[] = [
  echo,
  thing,
  streaming(Stream.empty),
  upload,
  other,
  odd,
  content,
]
// the document as a client sees it, after JSON
const document = JSON.parse(
  JSON.stringify(describeApi({ name: "rakit", version: "1.2.3" }, endpoints)),
) as Document

const walk = (value: unknown, visit: (node: Record<string, unknown>) => void): void => {
  if (typeof value !== "object" || value === null) return
  if (!Array.isArray(value)) visit(value as Record<string, unknown>)
  for (const child of Object.values(value)) walk(child, visit)
}
const lookUp = (ref: string): unknown =>
  ref
    .slice(2)
    .split("/")
    .reduce<unknown>(
      (at, key) =>
        (at as Record<string, unknown> | undefined)?.[
          decodeURIComponent(key).replaceAll("~1", "/").replaceAll("~0", "~")
        ],
      document,
    )

const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
)

test("the frame of an OpenAPI 3.1 document", () => {
  expect(document).toMatchObject({ openapi: "3.1.0", info: { title: "rakit", version: "1.2.3" } })
  expect(Object.keys(document.paths)).toEqual([
    "/v1/echo",
    "/v2/echo",
    "/v1/things/{thing_id}",
    "/v1/stream",
    "/v1/files",
    "/v1/other",
    "/v1/odd",
    "/v1/files/{id}/content",
  ])
})

test("every $ref resolves", () => {
  const refs = new Set<string>()
  walk(document, (node) => {
    if (typeof node.$ref === "string") refs.add(node.$ref)
  })
  expect(refs.size).toBeGreaterThan(10)
  for (const ref of refs) expect([ref, lookUp(ref)]).toEqual([ref, expect.any(Object)])
})

test("operations: unique ids, path parameters declared, responses described, security known", () => {
  const ids = operations.map(({ operation }) => operation.operationId)
  expect(new Set(ids).size).toBe(ids.length)
  for (const { path, method, operation } of operations) {
    expect(["get", "post", "patch", "delete"]).toContain(method)
    const declared = operation.parameters.flatMap((p) =>
      "in" in p && p.in === "path" && p.required ? [p.name] : [],
    )
    expect(declared).toEqual([...path.matchAll(/\{([^}]+)\}/g)].map((m) => m[1]))
    expect(Object.keys(operation.responses)).toContain("200")
    for (const [status, response] of Object.entries(operation.responses)) {
      expect(status).toMatch(/^[1-5]\d\d$/)
      expect(response.description.length).toBeGreaterThan(0)
    }
    for (const need of operation.security)
      for (const scheme of Object.keys(need))
        expect(document.components.securitySchemes).toHaveProperty(scheme)
  }
})

test("bodies, replies and events come from the schemas; one identifier is one definition", () => {
  const echoed = document.paths["/v1/echo"]!.post!
  expect(echoed.requestBody?.content["application/json"]?.schema).toEqual({
    $ref: "#/components/schemas/EchoRequest",
  })
  expect(document.components.schemas.EchoRequest).toMatchObject({
    type: "object",
    required: ["model"],
    properties: { model: { type: "string" }, count: { type: "integer" } },
  })
  expect(
    document.paths["/v1/other"]!.get!.responses["200"]!.content!["application/json"]!.schema,
  ).toEqual({ $ref: "#/components/schemas/OtherReply" })
  expect(document.components.schemas.OtherReply).toMatchObject({
    properties: { echo: { $ref: "#/components/schemas/EchoRequest" } },
  })
  expect(document.paths["/v1/stream"]!.post!.responses["200"]!.content).toHaveProperty([
    "text/event-stream",
  ])
  expect(document.paths["/v1/files"]!.post!.requestBody?.content).toHaveProperty([
    "application/octet-stream",
  ])
})

test("bodies of keys say that a key may have a smaller limit; files have none of it", () => {
  const about = (path: string) => document.paths[path]?.post?.requestBody?.description
  expect(about("/v1/echo")).toMatch(/^At most 2048 bytes, or the key's `limits\.body_mb` where/)
  expect(about("/v1/files")).toBe("At most 10 bytes; gzip is accepted.")
})

test("what spends may be tried without: its reply may be that of a dry run", () => {
  const contentOf = (path: string) =>
    document.paths[path]!.post!.responses["200"]!.content!["application/json"]!.schema
  expect(contentOf("/v1/echo")).toEqual({
    anyOf: [{ $ref: "#/components/schemas/EchoReply" }, { $ref: "#/components/schemas/DryRun" }],
  })
  expect(JSON.stringify(document.paths["/v1/echo"]!.post!.parameters)).toContain("DryRun")
  expect(JSON.stringify(document.paths["/v1/other"]!.get!.parameters)).not.toContain("DryRun")
})

test("parameters of the query come from the schema that decodes it", () => {
  const list = defineEndpoint({ ...thing, id: "list", path: "/v1/list", query: PageQuery })
  const { paths } = describeApi({ name: "a", version: "1" }, [list]) as unknown as Document
  expect(paths["/v1/list"]!.get!.parameters.filter((one) => "in" in one)).toEqual([
    {
      name: "limit",
      in: "query",
      required: false,
      description: "How many items at most.",
      schema: { type: "integer", minimum: 1, maximum: 100, default: 20 },
    },
    {
      name: "after",
      in: "query",
      required: false,
      description: expect.any(String),
      schema: { type: "string" },
    },
  ])
})

test("operation ids are identifiers", () => {
  expect(operations.map(({ operation }) => operation.operationId)).toEqual([
    ...["echo", "echoV2", "thingsGet", "stream", "filesCreate", "other", "odd", "filesContent"],
  ])
})

test("security and headers follow the access of an endpoint", () => {
  expect(document.paths["/v1/echo"]!.post!.security).toEqual([{ apiKey: [] }])
  expect(document.paths["/v1/things/{thing_id}"]!.get!.security).toEqual([])
  expect(JSON.stringify(document.paths["/v1/files"]!.post!.parameters)).toContain("IdempotencyKey")
  expect(JSON.stringify(document.paths["/v1/echo"]!.post!.parameters)).not.toContain(
    "IdempotencyKey",
  )
})

test("every code that can occur has its status; every code of the registry occurs somewhere, but for 405", () => {
  for (const endpoint of endpoints)
    for (const code of codesOf(endpoint)) {
      const response =
        document.paths[endpoint.path]![endpoint.method.toLowerCase()]!.responses[
          String(errorRegistry[code].status)
        ]
      expect(response?.description).toContain(`\`${code}\``)
    }
  const occurring = new Set(endpoints.flatMap(codesOf))
  expect(Object.keys(errorRegistry).filter((code) => !occurring.has(code as never))).toEqual([
    "method_not_allowed",
  ])
  expect(codesOf(thing)).not.toContain("authentication_error")
})

test("signing in can fail by its password and by its limit; what a session changes by its state", () => {
  expect(codesOf({ ...echo, access: "public" })).toEqual(
    expect.arrayContaining(["authentication_error", "rate_limit_error"]),
  )
  for (const access of ["session", "admin"] as const) {
    expect(codesOf({ ...echo, access })).toEqual(
      expect.arrayContaining([
        "authentication_error",
        "account_suspended",
        "rate_limit_error",
        "conflict",
      ]),
    )
    expect(codesOf({ ...echo, access })).not.toContain("email_not_verified")
    expect(codesOf({ ...thing, access })).not.toContain("account_suspended")
  }
})

test("a reply stands under its own status", () => {
  const { paths } = describeApi({ name: "a", version: "1" }, [
    { ...echo, status: 201 },
  ]) as unknown as Document
  expect(
    Object.keys(paths["/v1/echo"]!.post!.responses).filter((status) => status < "300"),
  ).toEqual(["201"])
})

test("no endpoints, or a schema that JSON can't say, still give a document", () => {
  expect(describeApi({ name: "a", version: "1" }, [])).toMatchObject({
    paths: {},
    servers: [{ url: "/" }],
    components: { schemas: { ErrorEnvelope: {} } },
  })
  expect(describeApi({ name: "a", version: "1" }, [], "https://api.example.com/")).toMatchObject({
    servers: [{ url: "https://api.example.com" }],
  })
  expect(document.paths["/v1/odd"]!.get!.responses["200"]).toBeDefined()
})
