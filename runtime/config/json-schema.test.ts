import { readFileSync } from "node:fs"
import { Ajv2020 } from "ajv/dist/2020.js"
import { expect, it } from "vitest"
import { configJsonSchema } from "./json-schema.ts"

const committed = () =>
  JSON.parse(
    readFileSync(new URL("../../config/rakit.schema.json", import.meta.url), "utf8"),
  ) as Record<string, unknown>

it("config/rakit.schema.json is what the schemas say (npm run schema)", async () => {
  expect(committed()).toEqual(JSON.parse(JSON.stringify(await configJsonSchema())))
})

it("every $ref resolves", () => {
  const schema = committed()
  const refs = JSON.stringify(schema).match(/"\$ref":"#\/\$defs\/[^"]+"/g) ?? []
  for (const ref of refs)
    expect(Object.keys(schema.$defs as object)).toContain(ref.slice('"$ref":"#/$defs/'.length, -1))
})

it("has the options of a model by its backend and task, and leaves those of others open", () => {
  const validate = new Ajv2020({ strict: false }).compile(committed())
  const takes = (backend: string, task: string, options: object) =>
    validate({
      plugins: {},
      models: [{ id: "m", task, backend, limits: { contextTokens: 1 }, options }],
    })
  expect(takes("onnx", "chat", { precision: "int4" })).toBe(true)
  expect(takes("onnx", "chat", { precison: "int4" })).toBe(false)
  expect(takes("webgpu", "chat", { precision: "int3" })).toBe(false)
  expect(takes("onnx", "transcribe", { slots: 2 })).toBe(true)
  expect(takes("onnx", "chat", { slots: 2 })).toBe(false)
  expect(takes("remote", "chat", { retries: "${RETRIES}" })).toBe(true)
  expect(takes("my-own", "chat", { anything: 1 })).toBe(true)
})
