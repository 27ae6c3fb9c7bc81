import { readFileSync } from "node:fs"
import { Result, type Schema, SchemaAST } from "effect"
import { describe, expect, it, test } from "vitest"
import { Tokens } from "../core/tokens.ts"
import { builtinPlugins } from "../plugins/index.ts"
import { decodePart } from "../runtime/config/decode.ts"
import { interpolate } from "../runtime/config/interpolate.ts"
import { DeploymentConfig } from "../runtime/config/schema.ts"
import {
  allConfigKeys,
  configKeys,
  exampleOf,
  readSchema,
  type SchemaNode,
  typeOf,
} from "./config-keys.ts"
import { configPage, fileExample, pluginExample } from "./config-page.ts"
import { optionsExample, taskOptions } from "./options-text.ts"

const taskNames = ["chat", "embed", "image", "rerank", "transcribe"]

/** The keys of a struct, whatever its defaults and checks are. */
const namesIn = (ast: SchemaAST.AST): readonly string[] =>
  SchemaAST.isObjects(ast) ? ast.propertySignatures.map(({ name }) => String(name)) : []

const decode = (schema: Schema.Codec<unknown, unknown>, example: unknown) => {
  const { value, fromEnvironment } = interpolate(example, {})
  return decodePart(schema, value, [], fromEnvironment)
}

const plugins = await Promise.all(
  Object.values(builtinPlugins).map(async (load) => (await load()).plugin),
)
const optionSchemas = new Map(
  plugins.flatMap(({ modelOptions = {} }) => Object.entries(modelOptions)),
)

describe("the options of model entries", () => {
  const page = readFileSync(new URL("./config-reference.md", import.meta.url), "utf8")

  it("have a schema in every plugin with a backend, for each of its tasks", () => {
    const brings = plugins.filter(({ provides }) =>
      provides.some(({ name }) => name === Tokens.backends.name),
    )
    expect(brings.length).toBeGreaterThan(1)
    for (const { name, modelOptions = {} } of brings) {
      expect(Object.keys(modelOptions), name).not.toEqual([])
      for (const byTask of Object.values(modelOptions))
        expect(Object.keys(byTask).sort()).toEqual(taskNames)
    }
  })

  // by what is decoded, and not by the schema for editors: an option that the code takes is here
  it.each(
    [...optionSchemas].flatMap(([backend, byTask]) =>
      Object.entries(byTask).map(([task, schema]) => [task, backend, schema.ast] as const),
    ),
  )("of %s models of %s are all in the reference, and say what they mean", (task, backend, ast) => {
    const of = taskOptions().find((one) => one.task === task && one.backends.includes(backend))!
    const from = page.indexOf(`### Options of ${of.backends.join(" and ")}`)
    const section = page.slice(from, page.indexOf("\n### ", from + 1))
    const missing = namesIn(ast).filter((name) => !section.includes(`| \`${name}\` |`))
    expect(missing).toEqual([])
    const keys = configKeys(of.node, "", readSchema())
    expect(keys.map(({ path }) => path)).toEqual(expect.arrayContaining([...namesIn(ast)]))
    const silent = keys.filter(({ node }) => (node.description ?? "").length < 8)
    expect(silent.map(({ path }) => path)).toEqual([])
  })
})

test("what operators look for has a heading of its own, with the setting below it", () => {
  const page = readFileSync(new URL("./config-reference.md", import.meta.url), "utf8")
  const sections = page.split(/^#{2,4} /m).map((text) => {
    const [title = "", ...lines] = text.split("\n")
    return { anchor: title.toLowerCase().replaceAll(" ", "-"), text: lines.join("\n") }
  })
  const wanted = {
    port: "server",
    drainTimeoutMs: "server",
    endpoint: "otel",
    level: "log",
    allowHosts: "outbound",
    modelsDir: "the-file",
    "defaultLimits.rpm": "accounts",
    kvMemoryMb: "backend-onnx",
    precision: "chat-models-of-onnx-and-webgpu",
    fallback: "options-of-remote",
    "sources[].sha256": "models",
    url: "database-postgres",
    bucket: "storage-s3",
  }
  const lost = Object.entries(wanted).filter(
    ([key, anchor]) =>
      !sections.some((one) => one.anchor === anchor && one.text.includes(`| \`${key}\` |`)),
  )
  expect(lost).toEqual([])
})

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

  it.each(taskOptions().map((one) => [`${one.task} models of ${one.backends}`, one] as const))(
    "of the options of %s",
    (_, options) => {
      const schema = optionSchemas.get(options.backends[0]!)![options.task]!
      const decoded = decode(schema as never, optionsExample(options))
      expect(Result.isSuccess(decoded) || decoded.failure).toBe(true)
    },
  )

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
