import { describe, expect, it } from "vitest"
import { type RefusedField, refusedFields } from "./refused-fields.ts"
import { ChatBody } from "./request-schema.ts"
import { bodyAsker } from "./testing/body-asker.ts"

const { codeAndParam, answer } = bodyAsker()
const fields: readonly (readonly [string, RefusedField])[] = Object.entries(refusedFields)

describe("a field that would change the answer and is not served", () => {
  it.each(fields)("%s is refused by name", async (name) => {
    for (const value of [7.5, "x", [1], { type: "enabled" }])
      expect(await codeAndParam({ [name]: value })).toEqual(["unsupported_parameter", name])
  })

  it.each(fields)("%s is fine where it asks for nothing", async (name, { idle = [] }) => {
    for (const value of [null, ...idle])
      expect(await codeAndParam({ [name]: value })).toEqual(["ok"])
  })

  it.each(["choices", "structural_tag", "whitespace_pattern", "constructor"])(
    "structured_outputs.%s is refused by name",
    async (name) => {
      expect(await codeAndParam({ structured_outputs: { [name]: "x" } })).toEqual([
        "unsupported_parameter",
        `structured_outputs.${name}`,
      ])
      expect(await codeAndParam({ structured_outputs: { [name]: null } })).toEqual(["ok"])
    },
  )

  it.each(["weight", "scale", "name", "constructor"])(
    "adapter.%s is refused by name",
    async (name) => {
      expect(await codeAndParam({ adapter: { id: "legal", [name]: 0.5 } })).toEqual([
        "unsupported_parameter",
        `adapter.${name}`,
      ])
      // read on: the model has no such adapter
      expect(await codeAndParam({ adapter: { id: "legal", [name]: null } })).toEqual([
        "model_not_found",
        "adapter",
      ])
    },
  )

  it("says what to use instead", async () => {
    expect(await answer({ functions: [{ name: "f" }] })).toMatchObject({
      message: "functions: is not supported; use tools instead.",
    })
    expect(await answer({ adapter: { id: "legal", weight: 0.5 } })).toMatchObject({
      message: "adapter.weight: is not supported; use id and strength instead.",
    })
    expect(await answer({ function_call: "auto" })).toMatchObject({
      message: "function_call: is not supported; use tool_choice instead.",
    })
  })

  it("is none of those that are served", () => {
    expect(fields.filter(([name]) => Object.hasOwn(ChatBody.fields, name))).toEqual([])
  })
})

it("fields that change nothing, and those that nobody knows, are ignored", async () => {
  const harmless = {
    store: true,
    service_tier: "auto",
    safety_identifier: "u",
    prompt_cache_key: "k",
    prompt_cache_retention: "24h",
    prediction: { type: "content", content: "x" },
    guided_decoding_backend: "xgrammar",
    cache_prompt: true,
    priority: 1,
    request_id: "r",
    provider: { order: [] },
    constructor: 1,
    something_new: { a: 1 },
  }
  expect(await codeAndParam(harmless)).toEqual(["ok"])
})
