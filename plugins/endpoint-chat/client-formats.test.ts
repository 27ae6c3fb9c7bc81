import type OpenAI from "openai"
import { makeParseableResponseFormat } from "openai/lib/parser"
import { afterEach, describe, expect, it } from "vitest"
import { type ClientFixture, openClient } from "./testing/open-client.ts"

let fixture: ClientFixture
const open = async () => {
  fixture = await openClient()
  return fixture.client
}
afterEach(() => fixture.deps.close())

const user: OpenAI.ChatCompletionMessageParam[] = [
  { role: "user", content: "What is the weather in Jakarta?" },
]

describe("structured output", () => {
  const schema = {
    type: "object",
    required: ["city", "degrees"],
    properties: { city: { type: "string" }, degrees: { type: "integer" } },
    additionalProperties: false,
  }
  const response_format = (more: object = {}) =>
    ({ type: "json_schema", json_schema: { name: "weather", schema, ...more } }) as const

  it("is parsed by the client's parse and stream helpers", async () => {
    const client = await open()
    const format = makeParseableResponseFormat(
      response_format({ strict: true }),
      (text) => JSON.parse(text) as { city: string; degrees: number },
    )
    const body = { model: "svc-lyt", messages: user, response_format: format }
    const whole = await client.chat.completions.parse(body)
    expect(whole.choices[0]?.message.parsed).toEqual({ city: "sample", degrees: 1 })
    const streamed = await client.chat.completions.stream(body).finalChatCompletion()
    expect(streamed.choices[0]?.message.parsed).toEqual({ city: "sample", degrees: 1 })
    expect(fixture.model.runs.map(({ request }) => request.responseFormat)).toEqual(
      Array(2).fill({ type: "json_schema", schema, strict: true }),
    )
  })

  it.each<[object, unknown]>([
    [{ type: "text" }, undefined],
    [{ type: "json_object" }, { type: "json_object" }],
    [
      { type: "json_object", close_on_length: true },
      { type: "json_object", closeOnLength: true },
    ],
    [response_format(), { type: "json_schema", schema, strict: false }],
    [
      response_format({ strict: null, description: "The weather." }),
      { type: "json_schema", schema, strict: false },
    ],
    [
      response_format({ strict: true, close_on_length: true }),
      { type: "json_schema", schema, strict: true, closeOnLength: true },
    ],
    [response_format({ close_on_length: false }), { type: "json_schema", schema, strict: false }],
    [response_format({ schema: true }), { type: "json_schema", schema: true, strict: false }],
  ])("%j", async (format, responseFormat) => {
    const client = await open()
    await client.chat.completions.create({
      model: "svc-lyt",
      messages: user,
      response_format: format as OpenAI.ResponseFormatJSONObject,
    })
    expect(fixture.model.runs[0]?.request.responseFormat).toEqual(responseFormat)
  })

  it("comes after free thoughts", async () => {
    const client = await open()
    const { choices, usage } = await client.chat.completions.create({
      model: "svc-lyt",
      messages: user,
      response_format: response_format(),
      chat_template_kwargs: { enable_thinking: true },
    } as OpenAI.ChatCompletionCreateParamsNonStreaming)
    expect(choices[0]?.message).toMatchObject({
      content: '{"city":"sample","degrees":1}',
      reasoning_content: "Let me think.",
    })
    expect(usage?.completion_tokens_details?.reasoning_tokens).toBe(3)
  })
})

it("takes what the AI SDK sends", async () => {
  await open()
  const parameters = {
    $schema: "http://json-schema.org/draft-07/schema#",
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  }
  const assistant = {
    role: "assistant",
    content: "",
    tool_calls: [
      {
        id: "tooluse-1.a",
        type: "function",
        function: { name: "weather", arguments: '{ "city":"Jakarta"}' },
      },
    ],
  }
  const body = {
    model: "svc-lyt",
    max_tokens: undefined,
    temperature: 0,
    messages: [
      { role: "system", content: "Be kind." },
      { role: "user", content: [{ type: "text", text: "hi" }] },
      assistant,
      { role: "tool", tool_call_id: "tooluse-1.a", content: '{"degrees":31}' },
    ],
    tools: [
      {
        type: "function",
        function: { name: "weather", description: "d", parameters, strict: false },
      },
    ],
    tool_choice: "auto",
    response_format: {
      type: "json_schema",
      json_schema: { schema: parameters, strict: true, name: "response" },
    },
  }
  expect(await fixture.post("/v1/chat/completions", body)).toMatchObject({
    status: 200,
    json: { choices: [{ finish_reason: "stop" }] },
  })
  expect(fixture.model.runs[0]?.request.messages[2]).toEqual({
    role: "assistant",
    content: [{ type: "text", text: "" }],
    toolCalls: [{ id: "tooluse-1.a", name: "weather", arguments: '{ "city":"Jakarta"}' }],
  })
})
