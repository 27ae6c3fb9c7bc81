import { describe, expect, it } from "vitest"
import { bodyAsker, goodBody } from "./testing/body-asker.ts"

const { codeAndParam, answer } = bodyAsker()
const [user] = goodBody.messages
const named = (name: string, parameters?: unknown, more: object = {}) => ({
  type: "function",
  function: { name, ...(parameters !== undefined && { parameters }), ...more },
})
const tool = named("f", { type: "object" })
const call = (id: string, more: object = {}) => ({
  id,
  type: "function",
  function: { name: "f", arguments: "{}" },
  ...more,
})
const calls = (...ids: readonly string[]) => ({
  role: "assistant",
  content: null,
  tool_calls: ids.map((id) => call(id)),
})
const result = (tool_call_id: string) => ({ role: "tool", tool_call_id, content: "42" })
const choose = (name: string) => ({ tool_choice: { type: "function", function: { name } } })
const format = (json_schema: object) => ({
  response_format: { type: "json_schema", json_schema: { name: "x", ...json_schema } },
})
const manyProperties = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, {}]))
const nested = (levels: number): object =>
  levels === 1 ? { type: "object" } : { type: "object", not: nested(levels - 1) }

describe("a wrong field is 400 with its path", () => {
  it.each<[string, object]>([
    ["tools", { tools: tool }],
    ["tools", { tools: Array.from({ length: 129 }, (_, i) => named(`f${i}`)) }],
    [
      "tools",
      {
        tools: Array.from({ length: 5 }, (_, i) =>
          named(`f${i}`, { type: "object", $comment: "x".repeat(500_000) }),
        ),
      },
    ],
    ["tools[0].type", { tools: [{ ...tool, type: "x" }] }],
    ["tools[0].function", { tools: [{ type: "function" }] }],
    ["tools[0].function.name", { tools: [{ type: "function", function: {} }] }],
    ["tools[0].function.name", { tools: [named("two words")] }],
    ["tools[0].function.name", { tools: [named("")] }],
    ["tools[0].function.name", { tools: [named("x".repeat(65))] }],
    ["tools[2].function.name", { tools: [tool, named("g"), tool] }],
    ["tools[0].function.description", { tools: [named("f", {}, { description: 5 })] }],
    [
      "tools[0].function.description",
      { tools: [named("f", { type: "object" }, { description: "x".repeat(16_385) })] },
    ],
    ["tools[0].function.strict", { tools: [named("f", { type: "object" }, { strict: "yes" })] }],
    ...["x", 5, true, [], {}, { type: "string" }, { type: ["object"] }, { properties: {} }].map(
      (parameters): [string, object] => [
        "tools[0].function.parameters",
        { tools: [named("f", parameters)] },
      ],
    ),
    [
      "tools[1].function.parameters",
      { tools: [tool, named("g", { type: "object", properties: manyProperties(10_001) })] },
    ],
    [
      "tools[0].function.parameters",
      { tools: [named("f", { type: "object", properties: { ["k".repeat(257)]: {} } })] },
    ],
    [
      "tools[0].function.parameters",
      { tools: [named("f", { type: "object", $comment: "x".repeat(512 * 1024) })] },
    ],
    ["tools[0].function.parameters", { tools: [named("f", nested(65))] }],
    ["tool_choice", { tool_choice: "maybe" }],
    ["tool_choice", { tool_choice: "maybe", tools: [tool] }],
    ["tool_choice", { tool_choice: 5, tools: [tool] }],
    ["tool_choice", { tool_choice: "required" }],
    ["tool_choice", { tool_choice: "required", tools: [] }],
    ["tool_choice", choose("f")],
    ["tool_choice.function.name", { ...choose("g"), tools: [tool] }],
    ["tool_choice.function.name", { ...choose(""), tools: [tool] }],
    ["tool_choice.function", { tools: [tool], tool_choice: { type: "function" } }],
    ["parallel_tool_calls", { parallel_tool_calls: "no", tools: [tool] }],
    ["messages[1].tool_call_id", { messages: [user, result("a")] }],
    ["messages[0].tool_call_id", { messages: [result("a"), user] }],
    ["messages[2].tool_call_id", { messages: [user, calls("a"), result("b")] }],
    ["messages[3].tool_call_id", { messages: [user, calls("a"), result("a"), result("a")] }],
    ["messages[4].tool_call_id", { messages: [user, calls("a"), result("a"), user, result("a")] }],
    [
      "messages[4].tool_call_id",
      { messages: [user, calls("a"), result("a"), calls("b"), result("a")] },
    ],
    [
      "messages[2].tool_call_id",
      { messages: [user, calls("a"), { ...result("a"), tool_call_id: "" }] },
    ],
    [
      "messages[2].tool_call_id",
      { messages: [user, calls("a"), { ...result("a"), tool_call_id: "x".repeat(257) }] },
    ],
    ["messages[2].content", { messages: [user, calls("a"), { ...result("a"), content: null }] }],
    ["messages[1].tool_calls[0].id", { messages: [user, calls("a")] }],
    ["messages[1].tool_calls[1].id", { messages: [user, calls("a", "b"), result("a"), user] }],
    ["messages[1].tool_calls[0].id", { messages: [user, calls("a"), calls("a"), result("a")] }],
    ["messages[1].tool_calls[1].id", { messages: [user, calls("a", "a"), result("a")] }],
    [
      "messages[1].tool_calls",
      { messages: [user, calls(...Array.from({ length: 129 }, (_, i) => `c${i}`))] },
    ],
    [
      "messages[1].tool_calls[0].id",
      { messages: [user, { role: "assistant", tool_calls: [call("")] }] },
    ],
    [
      "messages[1].tool_calls[0].type",
      { messages: [user, { role: "assistant", tool_calls: [call("a", { type: "x" })] }] },
    ],
    [
      "messages[1].tool_calls[0].function.name",
      {
        messages: [
          user,
          { role: "assistant", tool_calls: [call("a", { function: { arguments: "" } })] },
        ],
      },
    ],
    [
      "messages[1].tool_calls[0].function.arguments",
      {
        messages: [
          user,
          {
            role: "assistant",
            tool_calls: [call("a", { function: { name: "f", arguments: {} } })],
          },
        ],
      },
    ],
    [
      "messages[1].tool_calls[0].function.arguments",
      {
        messages: [
          user,
          {
            role: "assistant",
            tool_calls: [call("a", { function: { name: "f", arguments: "x".repeat(1_000_001) } })],
          },
        ],
      },
    ],
    ["messages[0].reasoning_content", { messages: [{ ...user, reasoning_content: "Hm" }] }],
    [
      "messages[1].reasoning_content",
      { messages: [user, { role: "assistant", content: "a", reasoning_content: 5 }] },
    ],
    ["response_format", { response_format: "json_object" }],
    ["response_format", { response_format: {} }],
    ["response_format", { response_format: { type: "xml" } }],
    [
      "response_format.close_on_length",
      { response_format: { type: "json_object", close_on_length: 1 } },
    ],
    ["response_format.json_schema", { response_format: { type: "json_schema" } }],
    [
      "response_format.json_schema.name",
      { response_format: { type: "json_schema", json_schema: { schema: {} } } },
    ],
    ["response_format.json_schema.name", format({ name: "two words", schema: {} })],
    ["response_format.json_schema.strict", format({ schema: {}, strict: "yes" })],
    ["response_format.json_schema.close_on_length", format({ schema: {}, close_on_length: "yes" })],
    ...[undefined, null, "x", 5, []].map((schema): [string, object] => [
      "response_format.json_schema.schema",
      format({ schema }),
    ]),
    [
      "response_format.json_schema.schema",
      format({
        schema: {
          anyOf: [{ properties: manyProperties(6_000) }, { properties: manyProperties(6_000) }],
        },
      }),
    ],
    ["response_format.json_schema.schema", format({ schema: nested(65) })],
    ["chat_template_kwargs", { chat_template_kwargs: true }],
  ])("%s", async (param, more) => {
    expect(await codeAndParam(more)).toEqual(["invalid_request_error", param])
  })
})

it.each<[string, object]>([
  [
    "tools are taken",
    {
      tools: [
        tool,
        named("g"),
        named("h", null, { description: null, strict: null }),
        named("A-z_0", { type: "object", properties: {} }, { strict: true }),
      ],
      ...choose("g"),
    },
  ],
  [
    "big tools are taken",
    {
      tools: Array.from({ length: 128 }, (_, i) =>
        named(
          `${i}`.padStart(64, "f"),
          { type: "object", properties: manyProperties(70) },
          { description: "x".repeat(1_000) },
        ),
      ),
    },
  ],
  [
    "a schema up to its limits is taken",
    format({
      strict: true,
      schema: { ...nested(64), properties: { ...manyProperties(9_999), ["k".repeat(256)]: true } },
    }),
  ],
  [
    "a format beside tools is taken",
    {
      ...format({ schema: { type: "object" } }),
      tools: [tool],
      tool_choice: "required",
      chat_template_kwargs: { enable_thinking: true, more: 1 },
    },
  ],
  [
    "calls and results are taken",
    {
      messages: [
        user,
        calls("a", "b"),
        result("b"),
        result("a"),
        calls("a"),
        result("a"),
        { role: "assistant", content: "", reasoning_content: "Hm", tool_calls: [] },
        { ...user, reasoning_content: "" },
      ],
    },
  ],
])("%s", async (_, more) => {
  expect(await codeAndParam(more)).toEqual(["ok"])
})

it.each<[object, string]>([
  [{ tools: [tool, tool] }, "tools[1].function.name: is the name of an earlier tool"],
  [
    { tools: [named("f", { type: "string" })] },
    "tools[0].function.parameters: must be a JSON Schema with type 'object'",
  ],
  [{ tool_choice: "required" }, "tool_choice: can't ask for a call where there are no tools"],
  [
    { ...choose("g"), tools: [tool] },
    "tool_choice.function.name: is not the name of one of the tools",
  ],
  [format({}), "response_format.json_schema.schema: missing key"],
  [format({ schema: "x" }), "response_format.json_schema.schema: must be a JSON Schema: an object"],
  [
    format({ schema: { properties: manyProperties(10_001) } }),
    "response_format.json_schema.schema: must have at most 10,000 properties",
  ],
  [
    { messages: [user, calls("a")] },
    "messages[1].tool_calls[0].id: is answered by no message of role 'tool' right behind it",
  ],
  [
    { messages: [user, result("a")] },
    "messages[1].tool_call_id: answers no call: the message must follow a message with tool_calls",
  ],
])("says what is wrong: %#", async (more, message) => {
  expect(await answer(more)).toMatchObject({ message })
})
