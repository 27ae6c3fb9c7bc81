import { expect, it } from "vitest"
import type { ChatRequest } from "../../core/ports/model.ts"
import { sampleOf, speak } from "./model-speech.ts"

const request = (more: Partial<ChatRequest>, role: "user" | "tool" = "user"): ChatRequest => ({
  messages: [{ role, content: [{ type: "text", text: "one two" }] }],
  sampling: { temperature: 0, topP: 1, frequencyPenalty: 0, presencePenalty: 0 },
  maxTokens: 64,
  stop: [],
  ...more,
})
const tools = [
  {
    name: "a",
    parameters: { type: "object", required: ["city"], properties: { city: { type: "string" } } },
  },
  { name: "b" },
]

it.each<[string, Partial<ChatRequest>, "user" | "tool", readonly string[]]>([
  ["all tools", { tools }, "user", ["a", "b"]],
  ["one at a time", { tools, parallelToolCalls: false }, "user", ["a"]],
  ["the one that is named", { tools, toolChoice: { name: "b" } }, "tool", ["b"]],
  ["some, if it must", { tools, toolChoice: "required" }, "tool", ["a", "b"]],
  ["none where there is a result", { tools }, "tool", []],
  ["none where it may not", { tools, toolChoice: "none" }, "user", []],
])("the fake calls %s", (_, more, role, names) => {
  const { first, says, ends } = speak(request(more, role))
  const called = first.flatMap((event) =>
    event.type === "toolCall" && event.name !== undefined ? [event.name] : [],
  )
  const written = first
    .map((event) => (event.type === "toolCall" && event.index === 0 ? event.argumentsDelta : ""))
    .join("")
  expect([called, says, ends]).toEqual([
    names,
    names.length > 0 ? [] : ["one", " two"],
    names.length > 0 ? "tool_calls" : "stop",
  ])
  if (names[0] === "a") expect(written).toBe('{"city":"sample"}')
})

it("the fake thinks, and fills a format", () => {
  const schema = {
    required: ["n", "of", "is", "kind", "nil"],
    properties: {
      n: { type: "integer", minimum: 7 },
      of: { type: "array", items: { type: ["number", "null"] } },
      is: { type: "boolean" },
      kind: { enum: ["x", "y"] },
      nil: { type: "null" },
    },
  }
  const { first, says, ends } = speak(
    request({ thinking: true, responseFormat: { type: "json_schema", strict: true, schema } }),
  )
  expect(first).toMatchObject([{ type: "reasoning" }, { type: "reasoning" }, { type: "reasoning" }])
  expect([JSON.parse(says.join("")), ends]).toEqual([
    { n: 7, of: [1], is: true, kind: "x", nil: null },
    "stop",
  ])
  expect(speak(request({ responseFormat: { type: "json_object" } })).says).toEqual(["{}"])
  expect(sampleOf({ const: 5 })).toBe(5)
})
