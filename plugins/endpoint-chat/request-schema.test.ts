import { Cause, Effect, Exit, Option, Schema } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { decodeBody } from "../../core/decode.ts"
import { isApiError } from "../../core/errors.ts"
import { runs } from "../../testing/property.ts"
import { ChatBody } from "./request-schema.ts"
import { bodyAsker, goodBody as good } from "./testing/body-asker.ts"

const { codeAndParam, answer } = bodyAsker()
const user = { role: "user", content: "hi" }
const block = { type: "text", text: "hi" }

describe("a wrong field is 400 with its path", () => {
  it.each<[string, object]>([
    ["model", { model: undefined }],
    ["model", { model: 5 }],
    ["model", { model: "" }],
    ["messages", { messages: undefined }],
    ["messages", { messages: [] }],
    ["messages", { messages: "hi" }],
    ["messages", { messages: Array(2001).fill(user) }],
    ["messages[1]", { messages: [user, 5] }],
    ["messages[0].role", { messages: [{ role: "boss", content: "hi" }] }],
    ["messages[0].role", { messages: [{ content: "hi" }] }],
    ["messages[0].content", { messages: [{ role: "user" }] }],
    ["messages[0].content", { messages: [{ role: "user", content: null }] }],
    ["messages[0].content", { messages: [{ role: "user", content: 5 }] }],
    ["messages[0].content", { messages: [{ role: "user", content: [] }] }],
    ["messages[0].content", { messages: [{ role: "assistant", content: null, tool_calls: [] }] }],
    [
      "messages[0].content[1].text",
      { messages: [{ role: "user", content: [block, { type: "text" }] }] },
    ],
    ["messages[0].content[0]", { messages: [{ role: "user", content: [{ type: "video" }] }] }],
    [
      "messages[0].content[0].image_url",
      { messages: [{ role: "user", content: [{ type: "image_url", image_url: "x" }] }] },
    ],
    [
      "messages[0].content[0].cache_control",
      { messages: [{ role: "user", content: [{ ...block, cache_control: { type: "eternal" } }] }] },
    ],
    ["messages[1].tool_call_id", { messages: [user, { role: "tool", content: "42" }] }],
    [
      "messages[0].tool_calls",
      {
        messages: [
          {
            ...user,
            tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: "{}" } }],
          },
        ],
      },
    ],
    ["max_tokens", { max_tokens: 0 }],
    ["max_tokens", { max_tokens: 1.5 }],
    ["max_tokens", { max_tokens: 1025 }],
    ["max_completion_tokens", { max_completion_tokens: 1025 }],
    ["max_completion_tokens", { max_completion_tokens: 5, max_tokens: 6 }],
    ["temperature", { temperature: 2.1 }],
    ["temperature", { temperature: -0.1 }],
    ["temperature", { temperature: "1" }],
    ["top_p", { top_p: 1.1 }],
    ["n", { n: 0 }],
    ["n", { n: 9 }],
    ["n", { n: 1.5 }],
    ["n", { n: "2" }],
    ["stream", { stream: "yes" }],
    ["stream_options", { stream_options: { include_usage: true } }],
    ["stream_options", { stream: true, stream_options: 5 }],
    ["stop", { stop: "" }],
    ["stop", { stop: ["a", "b", "c", "d", "e"] }],
    ["stop[1]", { stop: ["a", ""] }],
    ["stop[0]", { stop: [5] }],
    ["stop", { stop: "x".repeat(1001) }],
    ["seed", { seed: 1.5 }],
    ["top_k", { top_k: -2 }],
    ["top_k", { top_k: 1.5 }],
    ["min_p", { min_p: 1.1 }],
    ["repetition_penalty", { repetition_penalty: 0 }],
    ["seed", { seed: 1e300 }],
    ["frequency_penalty", { frequency_penalty: 3 }],
    ["presence_penalty", { presence_penalty: -3 }],
    ["logit_bias.15", { logit_bias: { "15": 101 } }],
    ["logit_bias.abc", { logit_bias: { abc: 1 } }],
    ["top_logprobs", { logprobs: true, top_logprobs: 21 }],
    ["top_logprobs", { top_logprobs: 3 }],
    ["chat_template_kwargs.enable_thinking", { chat_template_kwargs: { enable_thinking: "yes" } }],
    ["user", { user: "x".repeat(513) }],
    ["metadata.k", { metadata: { k: 5 } }],
    [`metadata.${"k".repeat(64)}`, { metadata: { ["k".repeat(65)]: "v" } }],
    [
      "metadata",
      { metadata: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`k${i}`, "v"])) },
    ],
  ])("%s", async (param, more) => {
    expect(await codeAndParam(more)).toEqual(["invalid_request_error", param])
  })
})

it("what is not served yet is refused, never dropped", async () => {
  const image = {
    role: "user",
    content: [{ type: "image_url", image_url: { url: "https://example.com/a.png" } }],
  }
  expect(await codeAndParam({ messages: [user, image] })).toEqual([
    "unsupported_parameter",
    "messages[1].content[0].image_url",
  ])
})

it.each<[string, object]>([
  [
    "null is as if absent",
    Object.fromEntries(
      Object.keys(ChatBody.fields)
        .filter((key) => !(key in good))
        .map((key) => [key, null]),
    ),
  ],
  ["unknown fields are ignored", { service_tier: "auto", store: false, zzz: { a: [1] } }],
  [
    "what asks for nothing is fine",
    {
      tools: [],
      tool_choice: "none",
      response_format: { type: "text" },
      chat_template_kwargs: { enable_thinking: false },
      logprobs: false,
      top_logprobs: 0,
      top_k: -1,
      min_p: 0,
      repetition_penalty: 1,
      n: 1,
      stop: [],
    },
  ],
  [
    "cache_control beside plain content is ignored",
    { messages: [{ ...user, cache_control: { type: "ephemeral" } }] },
  ],
  [
    "cache markers are taken",
    {
      messages: [
        { role: "user", content: [block, { ...block, cache_control: { type: "ephemeral" } }] },
      ],
    },
  ],
  ["log-probabilities are taken", { logprobs: true, top_logprobs: 20 }],
  ["labels are taken", { user: "u", metadata: { a: "b" }, parallel_tool_calls: true, seed: -5 }],
])("%s", async (_, more) => {
  expect(await codeAndParam(more)).toEqual(["ok"])
})

const field = fc.constantFrom(...Object.keys(ChatBody.fields))

it("any JSON is decoded or refused with an ApiError, and nothing throws", () => {
  fc.assert(
    fc.property(fc.oneof(fc.jsonValue(), fc.dictionary(field, fc.jsonValue())), (json) => {
      const exit = Effect.runSyncExit(decodeBody(ChatBody, json))
      if (Exit.isFailure(exit))
        expect(isApiError(Option.getOrUndefined(Cause.findErrorOption(exit.cause)))).toBe(true)
    }),
    { numRuns: runs(500) },
  )
})

it("any value in one field is answered or refused: never an internal error", async () => {
  await fc.assert(
    fc.asyncProperty(field, fc.jsonValue(), async (key, value) => {
      const [code] = await codeAndParam({ [key]: value })
      expect([
        "ok",
        "invalid_request_error",
        "model_not_found",
        "unsupported_parameter",
        "context_length_exceeded",
      ]).toContain(code)
    }),
    { numRuns: runs(500) },
  )
})

it("stop is one text or up to four, none empty", () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.array(fc.string(), { maxLength: 6 })), (stop) => {
      const texts = typeof stop === "string" ? [stop] : stop
      const fits = texts.length <= 4 && texts.every((text) => text !== "")
      expect(Exit.isSuccess(Effect.runSyncExit(decodeBody(ChatBody, { ...good, stop })))).toBe(fits)
    }),
  )
})

it("has names for /openapi.json", () => {
  const { schema, definitions } = Schema.toJsonSchemaDocument(ChatBody)
  expect(schema).toEqual({ $ref: "#/$defs/ChatCompletionRequest" })
  expect(Object.keys(definitions)).toEqual(
    expect.arrayContaining([
      "ChatMessage",
      "TextBlock",
      "ImageBlock",
      "Tool",
      "ToolChoice",
      "ResponseFormat",
    ]),
  )
})

it("says what a content block must be", async () => {
  expect(
    await answer({ messages: [{ role: "user", content: [{ type: "video" }] }] }),
  ).toMatchObject({
    message:
      "messages[0].content[0]: must be a block of type text, image_url, input_audio, video_url or input_video",
  })
})
