import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Validator } from "@seriousme/openapi-schema-validator"
import { Effect } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import type { Json } from "../../../core/json.ts"
import { fakeLog } from "../../../testing/fakes/log.ts"
import { assemble } from "../../boot/assemble.ts"
import { loadConfig } from "../../config/load.ts"
import { describeApi } from "./document.ts"

type Node = Record<string, Json>

const folder = mkdtempSync(join(tmpdir(), "rakit-openapi-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

// everything that is built in, as it is served
let document: Node
beforeAll(async () => {
  const config = loadConfig("config/test.yaml", { RAKIT_DATA: folder })
  const { endpoints } = await Effect.runPromise(Effect.scoped(assemble(config, "all", fakeLog())))
  document = JSON.parse(
    JSON.stringify(describeApi({ name: "rakit", version: "1.2.3" }, endpoints)),
  ) as Node
})

const isNode = (value: Json): value is Node => typeof value === "object" && value !== null
const walk = (value: Json, visit: (node: Node, path: string) => void, path = "#"): void => {
  if (!isNode(value)) return
  if (!Array.isArray(value)) visit(value, path)
  for (const [key, child] of Object.entries(value))
    if (key !== "examples") walk(child, visit, `${path}/${key}`)
}
const schemas = () => (document.components as Node).schemas as Node
const operation = (path: string, method: string) =>
  ((document.paths as Node)[path] as Node)[method] as Node
const parametersOf = (path: string) =>
  (operation(path, "get").parameters as { name?: string; in?: string }[])
    .filter((one) => one.in === "query")
    .map((one) => one.name)

it("is valid OpenAPI 3.1", async () => {
  const validator = new Validator()
  const { valid, errors } = await validator.validate(structuredClone(document) as never)
  expect([errors, valid, validator.version]).toEqual([undefined, true, "3.1"])
})

it("has no object inside of another, and no default where a field may be left out", () => {
  const wrong: string[] = []
  for (const [name, schema] of Object.entries(schemas()))
    walk(schema, (node, path) => {
      if (path !== "#" && isNode(node.properties) && node.type === "object")
        wrong.push(`${name} ${path}: an object`)
      if ("default" in node && !path.endsWith("/properties")) wrong.push(`${name} ${path}: default`)
    })
  expect(wrong).toEqual([])
})

it("every list has its parameters", () => {
  for (const path of [
    "/v1/batches",
    "/v1/webhooks",
    "/v1/webhooks/{id}/deliveries",
    "/dashboard/keys",
    "/dashboard/ledger",
    "/admin/accounts",
    "/admin/audit",
  ])
    expect([path, parametersOf(path)]).toEqual([path, expect.arrayContaining(["limit", "after"])])
  expect(parametersOf("/v1/files")).toEqual(["limit", "after", "order", "purpose"])
})

it("every form has its fields, every download its bytes", () => {
  walk((document.paths as Node) ?? {}, (node) => {
    const content = node["multipart/form-data"] as { schema?: { $ref?: string } } | undefined
    if (content) expect(content.schema?.$ref).toMatch(/^#\/components\/schemas\/\w+Form$/)
  })
  const reply = (operation("/v1/files/{id}/content", "get").responses as Node)["200"] as Node
  // some generators know only the first
  expect(Object.keys(reply.content as Node)).toEqual([
    "application/octet-stream",
    "application/jsonl",
    "application/pdf",
    "text/plain",
    "text/markdown",
    "text/html",
    "text/csv",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
  ])
  for (const media of Object.values(reply.content as Node))
    expect(media).toEqual({ schema: { type: "string", format: "binary" } })
})

it("operation ids are identifiers, once each", () => {
  const ids = Object.values(document.paths as Node)
    .flatMap((item) => Object.values(item as Node))
    .map((one) => (one as { operationId: string }).operationId)
  expect(ids.filter((id) => !/^[a-z][A-Za-z0-9]+$/.test(id))).toEqual([])
  expect(new Set(ids).size).toBe(ids.length)
})
