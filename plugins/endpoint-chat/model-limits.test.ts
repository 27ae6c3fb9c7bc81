import { expect, it } from "vitest"
import { fakeChatModel } from "../../testing/index.ts"
import { openEndpoint } from "./testing/open-endpoint.ts"

const tool = { type: "function", function: { name: "look", parameters: { type: "object" } } }

/** The model behind the entry, which promises 4,096 tokens and answers of 1,024, has 100. */
const openSmall = () => {
  const opened = openEndpoint()
  const { loaded } = fakeChatModel()
  const smaller = { ...loaded, contextTokens: 100, capabilities: [] }
  opened.fixture.catalogue.set("svc-lyt", { state: "ready", loaded: smaller })
  return opened
}

it("refuses by name more tokens than the model's window has", async () => {
  const { ask } = openSmall()
  expect(await ask({ max_tokens: 101 })).toMatchObject({
    status: 400,
    json: { code: "context_length_exceeded", param: "max_tokens" },
  })
  expect(await ask({ max_completion_tokens: 1_025 })).toMatchObject({
    status: 400,
    json: { code: "invalid_request_error", param: "max_completion_tokens" },
  })
  expect(await ask({ max_tokens: 100 })).toMatchObject({ status: 200 })
})

it("refuses by name thinking, tools and forms of the answer of a model that lacks them", async () => {
  const { ask } = openSmall()
  const thinking = { chat_template_kwargs: { enable_thinking: true } }
  expect(await ask(thinking)).toMatchObject({
    status: 400,
    json: { code: "unsupported_parameter", param: "chat_template_kwargs.enable_thinking" },
  })
  expect(await ask({ tools: [tool] })).toMatchObject({
    status: 400,
    json: { code: "unsupported_parameter", param: "tools" },
  })
  for (const [param, asked] of [
    ["response_format", { response_format: { type: "json_object" } }],
    ["guided_choice", { guided_choice: ["yes", "no"] }],
    ["structured_outputs.regex", { structured_outputs: { regex: "a+" } }],
    ["guided_grammar", { guided_grammar: 'start: "a"' }],
    ["response_format", { response_format: { type: "grammar", grammar: 'start: "a"' } }],
    ["response_format", { response_format: { type: "regex", pattern: "a+" } }],
  ] as const)
    expect(await ask(asked)).toMatchObject({
      status: 400,
      json: { code: "unsupported_parameter", param },
    })
  for (const fine of [
    { response_format: { type: "text" } },
    { tools: [tool], tool_choice: "none" },
    { chat_template_kwargs: { enable_thinking: false } },
  ])
    expect(await ask(fine)).toMatchObject({ status: 200 })
  expect(await openEndpoint().ask({ ...thinking, tools: [tool] })).toMatchObject({ status: 200 })
})
