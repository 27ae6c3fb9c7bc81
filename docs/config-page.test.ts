import { readFileSync } from "node:fs"
import { Result, type Schema } from "effect"
import { describe, expect, it, test } from "vitest"
import { builtinPlugins } from "../plugins/index.ts"
import { decodePart } from "../runtime/config/decode.ts"
import { interpolate } from "../runtime/config/interpolate.ts"
import { DeploymentConfig } from "../runtime/config/schema.ts"
import {
  allConfigKeys,
  configKeys,
  configPage,
  exampleOf,
  fileExample,
  pluginExample,
  type SchemaNode,
  typeOf,
} from "./config-page.ts"

const decode = (schema: Schema.Codec<unknown, unknown>, example: unknown) => {
  const { value, fromEnvironment } = interpolate(example, {})
  return decodePart(schema, value, [], fromEnvironment)
}

test("docs/config-reference.md is what the schemas say (npm run docs)", () => {
  const page = readFileSync(new URL("./config-reference.md", import.meta.url), "utf8")
  expect(page).toBe(configPage())
})

test("every key says what it means, and what it is where it is missing", () => {
  const keys = allConfigKeys()
  expect(keys.length).toBeGreaterThan(200)
  const silent = keys.filter(({ node }) => (node.description ?? "").length < 8)
  expect(silent.map(({ path }) => path)).toEqual([])
})

describe("the examples have every key, and are taken by the schemas", () => {
  it("of the file itself", () => {
    const example = fileExample()
    expect(Object.keys(example).sort()).toEqual(Object.keys(DeploymentConfig.fields).sort())
    expect(decode(DeploymentConfig as never, example)).toMatchObject({ _tag: "Success" })
  })

  it.each(Object.keys(builtinPlugins))("of %s", async (name) => {
    const { plugin } = await builtinPlugins[name]!()
    const decoded = decode(plugin.settings as never, pluginExample(name))
    expect(Result.isSuccess(decoded) || decoded.failure).toBe(true)
  })

  it("and a wrong one is noticed", async () => {
    const { plugin } = await builtinPlugins["queue-postgres"]!()
    expect(decode(plugin.settings as never, { pollMs: 1 })).toMatchObject({ _tag: "Failure" })
  })
})

test("keys are found inside of lists, unions and references; types have their range", () => {
  const schema: SchemaNode = {
    properties: {
      a: { anyOf: [{ type: "integer", minimum: 1, maximum: 64 }, { pattern: "\\$\\{" }] },
      b: { type: "array", maxItems: 9, items: { $ref: "#/$defs/B" } },
      c: { type: "integer", exclusiveMinimum: 0, maximum: 2 ** 53 - 1 },
    },
    required: ["c"],
    $defs: {
      B: { type: "object", properties: { d: { enum: ["x", "y"] }, e: { type: "string" } } },
    },
  }
  const keys = configKeys(schema, "", schema)
  expect(keys.map(({ path, node }) => `${path}: ${typeOf(node, schema)}`)).toEqual([
    "a: integer 1 to 64",
    "b: list of maps, at most 9",
    "b[].d: `x`, `y`",
    "b[].e: string",
    "c: integer from 1",
  ])
  expect(keys.filter(({ isRequired }) => isRequired).map(({ path }) => path)).toEqual(["c"])
  expect(() => exampleOf(schema.properties!.b!, "b", schema)).toThrow("b[].e has no example")
})
