import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { apiError } from "../../core/errors.ts"
import type { FakeChatScript } from "../../testing/index.ts"
import { openEndpoint } from "./testing/open-endpoint.ts"

describe("a whole answer", () => {
  it("is a chat completion with all usage fields and its cost", async () => {
    const { ask } = openEndpoint()
    const { status, json } = await ask({})
    expect(status).toBe(200)
    expect(json).toEqual({
      id: "chatcmpl-2",
      object: "chat.completion",
      created: Date.UTC(2026, 0, 15, 12) / 1000,
      model: "svc-lyt",
      choices: [
        { index: 0, message: { role: "assistant", content: "Halo, dunia" }, finish_reason: "stop" },
      ],
      usage: {
        prompt_tokens: 3,
        completion_tokens: 3,
        total_tokens: 6,
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
        prompt_tokens_details: { cached_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 0 },
        // 3 x Rp1,500 + 3 x Rp6,000 per million
        cost_idr: 0.0225,
      },
    })
  })

  it("ends with length at max_tokens, under either name", async () => {
    for (const more of [
      { max_tokens: 2 },
      { max_completion_tokens: 2 },
      { max_tokens: 2, max_completion_tokens: 2 },
    ]) {
      const { json } = await openEndpoint().ask(more)
      expect(json).toMatchObject({
        choices: [{ message: { content: "Halo, " }, finish_reason: "length" }],
        usage: { completion_tokens: 2 },
      })
    }
  })

  it("never holds a stop string", async () => {
    expect((await openEndpoint().ask({ stop: "dun" })).json).toMatchObject({
      choices: [{ message: { content: "Halo, " }, finish_reason: "stop" }],
    })
    expect((await openEndpoint().ask({ stop: ["zzz", "lo, d"] })).json).toMatchObject({
      choices: [{ message: { content: "Ha" } }],
    })
  })

  it("has null content beside tool calls, and the reasoning apart", async () => {
    const { json } = await openEndpoint({
      first: [
        { type: "reasoning", text: "Hm" },
        { type: "toolCall", index: 0, id: "call_1", name: "weather", argumentsDelta: '{"city":' },
        { type: "toolCall", index: 0, argumentsDelta: '"Jakarta"}' },
      ],
      says: [],
      ends: "tool_calls",
    }).ask({})
    expect(json).toMatchObject({
      choices: [
        {
          message: {
            content: null,
            reasoning_content: "Hm",
            tool_calls: [
              {
                id: "call_1",
                type: "function",
                function: { name: "weather", arguments: '{"city":"Jakarta"}' },
              },
            ],
          },
          finish_reason: "tool_calls",
        },
      ],
      usage: { completion_tokens_details: { reasoning_tokens: 1 } },
    })
  })
})

describe("log-probabilities", () => {
  const plain = (token: string, logprob: number) => ({
    token,
    bytes: [...Buffer.from(token)],
    logprob,
  })
  const first: FakeChatScript["first"] = [
    {
      type: "text",
      text: "Ha",
      logprobs: [{ ...plain("Ha", -0.5), top: [plain("Ha", -0.5), plain("Ho", -1)] }],
    },
  ]
  const content = [{ ...plain("Ha", -0.5), top_logprobs: [plain("Ha", -0.5), plain("Ho", -1)] }]

  it("have the official shape, whole and streamed", async () => {
    const { json } = await openEndpoint({ first, says: [] }).ask({
      logprobs: true,
      top_logprobs: 2,
    })
    expect(json).toMatchObject({ choices: [{ message: { content: "Ha" }, logprobs: { content } }] })
    const { events } = await openEndpoint({ first, says: [] }).ask({
      logprobs: true,
      top_logprobs: 2,
      stream: true,
    })
    expect(events[1]).toMatchObject({
      choices: [{ delta: { content: "Ha" }, logprobs: { content } }],
    })
  })
})

describe("a stream", () => {
  it("keeps the six rules of the contract", async () => {
    const { events, json } = await openEndpoint().ask({
      stream: true,
      stream_options: { include_usage: true },
    })
    expect(json).toBeUndefined()
    const same = {
      id: "chatcmpl-2",
      object: "chat.completion.chunk",
      created: Date.UTC(2026, 0, 15, 12) / 1000,
      model: "svc-lyt",
    }
    const chunk = (delta: object, finish_reason: string | null = null) => ({
      ...same,
      choices: [{ index: 0, delta, finish_reason }],
    })
    expect(events.slice(0, -1)).toEqual([
      chunk({ role: "assistant", content: "" }),
      chunk({ content: "Halo" }),
      chunk({ content: ", " }),
      chunk({ content: "dunia" }),
      chunk({}, "stop"),
    ])
    expect(events.at(-1)).toMatchObject({
      ...same,
      choices: [],
      usage: {
        prompt_tokens: 3,
        completion_tokens: 3,
        total_tokens: 6,
        cache_creation_input_tokens: 0,
        cost_idr: 0.0225,
      },
    })
  })

  it("carries usage only when it is asked for", async () => {
    for (const more of [
      {},
      { stream_options: {} },
      { stream_options: null },
      { stream_options: { include_usage: false } },
    ]) {
      const { events } = await openEndpoint().ask({ stream: true, ...more })
      expect(events).toHaveLength(5)
      expect(events.every((event) => !("usage" in (event as object)))).toBe(true)
    }
  })

  it("has no chunk before the model begins, so an early failure keeps its status", async () => {
    const { ask } = openEndpoint({
      says: ["x"],
      before: () => Effect.fail(apiError("backend_timeout")),
    })
    expect(await ask({ stream: true })).toMatchObject({
      status: 504,
      json: { code: "backend_timeout" },
    })
  })

  it("of an empty answer still begins and ends", async () => {
    const { events } = await openEndpoint({ says: [] }).ask({ stream: true })
    expect(events).toMatchObject([
      { choices: [{ delta: { role: "assistant", content: "" } }] },
      { choices: [{ delta: {}, finish_reason: "stop" }] },
    ])
  })
})
