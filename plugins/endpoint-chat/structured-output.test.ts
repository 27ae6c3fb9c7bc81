import type OpenAI from "openai"
import { afterEach, describe, expect, it } from "vitest"
import { bodyAsker } from "./testing/body-asker.ts"
import { type ClientFixture, openClient, tools, user, weatherTool } from "./testing/open-client.ts"

const { codeAndParam, answer } = bodyAsker()
const schema = { type: "object", properties: { a: { type: "integer" } }, required: ["a"] }

let fixture: ClientFixture | undefined
afterEach(() => fixture?.deps.close())

/** What the model is asked for, when the official client sends these fields. */
const asked = async (more: object) => {
  fixture = await openClient()
  const { choices } = await fixture.client.chat.completions.create({
    model: "svc-lyt",
    messages: user,
    ...more,
  } as OpenAI.ChatCompletionCreateParamsNonStreaming)
  const { toolChoice, allowedTools, responseFormat } = fixture.model.runs[0]!.request
  return { choices, toolChoice, allowedTools, responseFormat }
}

describe("the form of the answer, by the names of other servers", () => {
  it.each<[string, object]>([
    ["guided_json", { guided_json: schema }],
    ["guided_json", { guided_json: JSON.stringify(schema) }],
    ["structured_outputs.json", { structured_outputs: { json: schema } }],
    ["json_schema", { json_schema: schema }],
  ])("%s is a strict schema", async (param, more) => {
    const { responseFormat, choices } = await asked(more)
    expect(responseFormat).toEqual({ type: "json_schema", strict: true, schema, param })
    expect(JSON.parse(choices[0]!.message.content!)).toEqual({ a: 1 })
  })

  it.each<[string, object]>([
    ["guided_regex", { guided_regex: "a+" }],
    ["structured_outputs.regex", { structured_outputs: { regex: "a+" } }],
    ["regex", { regex: "a+" }],
  ])("%s is a pattern", async (param, more) => {
    expect((await asked(more)).responseFormat).toEqual({ type: "regex", pattern: "a+", param })
  })

  it.each<[string, object]>([
    ["guided_grammar", { guided_grammar: 'start: "a"' }],
    ["structured_outputs.grammar", { structured_outputs: { grammar: 'start: "a"' } }],
    ["response_format.grammar", { response_format: { type: "grammar", grammar: 'start: "a"' } }],
  ])("%s is a grammar in Lark", async (param, more) => {
    expect((await asked(more)).responseFormat).toEqual({
      type: "grammar",
      lark: 'start: "a"',
      param,
    })
  })

  it("response_format takes a pattern, too, and closes it where it is asked to", async () => {
    const response_format = { type: "regex", pattern: "a+", close_on_length: true }
    expect((await asked({ response_format })).responseFormat).toEqual({
      type: "regex",
      pattern: "a+",
      param: "response_format.pattern",
      closeOnLength: true,
    })
  })

  it.each<[string, object]>([
    ["guided_choice", { guided_choice: ["yes", "no"] }],
    ["structured_outputs.choice", { structured_outputs: { choice: ["yes", "no"] } }],
  ])("%s is one of several texts", async (param, more) => {
    const { responseFormat, choices } = await asked(more)
    expect(responseFormat).toEqual({ type: "choice", choices: ["yes", "no"], param })
    expect(choices[0]!.message.content).toBe("yes")
  })

  it.each<[string, object]>([
    ["guided_json", { guided_json: 5 }],
    ["guided_json", { guided_json: "no schema" }],
    ["guided_json", { guided_json: "5" }],
    ["guided_regex", { guided_regex: ["a"] }],
    ["guided_regex", { guided_regex: "" }],
    ["guided_regex", { guided_regex: "a".repeat(10_001) }],
    ["guided_grammar", { guided_grammar: "a".repeat(64 * 1024 + 1) }],
    ["guided_grammar", { guided_grammar: "" }],
    ["response_format.pattern", { response_format: { type: "regex" } }],
    ["response_format.pattern", { response_format: { type: "regex", pattern: 5 } }],
    ["response_format.grammar", { response_format: { type: "grammar", lark: "start: A" } }],
    ["response_format.grammar", { response_format: { type: "grammar", grammar: "" } }],
    ["guided_choice", { guided_choice: [] }],
    ["guided_choice", { guided_choice: "yes" }],
    ["guided_choice[1]", { guided_choice: ["a", ""] }],
    ["guided_choice", { guided_choice: Array(1_001).fill("a") }],
    ["guided_choice", { guided_json: schema, guided_choice: ["a"] }],
    ["structured_outputs.regex", { structured_outputs: { regex: "a", json: schema } }],
    ["guided_json", { guided_json: schema, response_format: { type: "json_object" } }],
    ["guided_regex", { guided_regex: "a", response_format: { type: "regex", pattern: "a" } }],
    ["structured_outputs.grammar", { guided_regex: "a", structured_outputs: { grammar: "a: B" } }],
  ])("a wrong %s is 400 with its path", async (param, more) => {
    expect(await codeAndParam(more)).toEqual(["invalid_request_error", param])
  })

  it("response_format text is beside any", async () => {
    const text = { response_format: { type: "text" } }
    expect(await codeAndParam({ guided_choice: ["a"], ...text })).toEqual(["ok"])
  })
})

it.each<[string, object]>([
  ["structured_outputs.choices", { structured_outputs: { choices: ["a"] } }],
  ["structured_outputs.structural_tag", { structured_outputs: { structural_tag: "{}" } }],
  [
    "structured_outputs.disable_any_whitespace",
    { structured_outputs: { json: schema, disable_any_whitespace: true } },
  ],
])("%s is not served", async (param, more) => {
  expect(await codeAndParam(more)).toEqual(["unsupported_parameter", param])
})

describe("tool_choice allowed_tools", () => {
  const allow = (mode: string, ...names: string[]) => ({
    tools: [...tools, weatherTool("get_time"), weatherTool("get_news")],
    tool_choice: {
      type: "allowed_tools",
      allowed_tools: {
        mode,
        tools: names.map((name) => ({ type: "function", function: { name } })),
      },
    },
  })

  it.each(["auto", "required"])("%s among some of the tools", async (mode) => {
    const { choices, toolChoice, allowedTools } = await asked(allow(mode, "get_time", "get_news"))
    expect([toolChoice, allowedTools]).toEqual([mode, ["get_time", "get_news"]])
    const calls = choices[0]!.message.tool_calls as OpenAI.ChatCompletionMessageFunctionToolCall[]
    expect(calls.map((call) => call.function.name)).toEqual(["get_time", "get_news"])
  })

  it.each<[string, object]>([
    ["tool_choice.allowed_tools.tools[1].function.name", allow("auto", "get_time", "other")],
    ["tool_choice.allowed_tools.tools", allow("auto")],
    ["tool_choice.allowed_tools.mode", allow("none", "get_time")],
    ["tool_choice", { ...allow("auto", "get_time"), tools: [] }],
  ])("a wrong %s is 400", async (param, more) => {
    expect(await codeAndParam(more)).toEqual(["invalid_request_error", param])
  })

  it.each([
    { type: "any" },
    { type: "tool", name: "get_weather" },
    { type: "custom", custom: { name: "x" } },
    "any",
  ])("other forms are refused with the accepted ones", async (tool_choice) => {
    const refusal = (await answer({ tools, tool_choice })) as { readonly message: string }
    expect(refusal.message).toMatch(/auto.*none.*required.*function.*name.*allowed_tools/)
  })
})
