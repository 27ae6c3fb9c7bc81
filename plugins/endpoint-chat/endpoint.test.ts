import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import { apiError } from "../../core/errors.ts"
import {
  callPathFixture,
  type FakeChatScript,
  fakeChatModel,
  fakeEmbedModel,
} from "../../testing/index.ts"
import { makeChatEndpoint } from "./endpoint.ts"

const open = (script: FakeChatScript = { says: ["Halo", ", ", "dunia"] }) => {
  const model = fakeChatModel(script)
  const fixture = callPathFixture([model, fakeEmbedModel()])
  const endpoint = makeChatEndpoint(fixture)
  return {
    model,
    fixture,
    ask: (more: object) =>
      fixture.ask(endpoint, {
        model: "svc-lyt",
        messages: [{ role: "user", content: "Selamat pagi" }],
        ...more,
      }),
  }
}

describe("a whole answer", () => {
  it("is a chat completion with all usage fields and its cost", async () => {
    const { ask } = open()
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
      const { json } = await open().ask(more)
      expect(json).toMatchObject({
        choices: [{ message: { content: "Halo, " }, finish_reason: "length" }],
        usage: { completion_tokens: 2 },
      })
    }
  })

  it("never holds a stop string", async () => {
    expect((await open().ask({ stop: "dun" })).json).toMatchObject({
      choices: [{ message: { content: "Halo, " }, finish_reason: "stop" }],
    })
    expect((await open().ask({ stop: ["zzz", "lo, d"] })).json).toMatchObject({
      choices: [{ message: { content: "Ha" } }],
    })
  })

  it("has null content beside tool calls, and the reasoning apart", async () => {
    const { json } = await open({
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
    const { json } = await open({ first, says: [] }).ask({ logprobs: true, top_logprobs: 2 })
    expect(json).toMatchObject({ choices: [{ message: { content: "Ha" }, logprobs: { content } }] })
    const { events } = await open({ first, says: [] }).ask({
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
    const { events, json } = await open().ask({
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
      const { events } = await open().ask({ stream: true, ...more })
      expect(events).toHaveLength(5)
      expect(events.every((event) => !("usage" in (event as object)))).toBe(true)
    }
  })

  it("has no chunk before the model begins, so an early failure keeps its status", async () => {
    const { ask } = open({ says: ["x"], before: () => Effect.fail(apiError("backend_timeout")) })
    expect(await ask({ stream: true })).toMatchObject({
      status: 504,
      json: { code: "backend_timeout" },
    })
  })

  it("of an empty answer still begins and ends", async () => {
    const { events } = await open({ says: [] }).ask({ stream: true })
    expect(events).toMatchObject([
      { choices: [{ delta: { role: "assistant", content: "" } }] },
      { choices: [{ delta: {}, finish_reason: "stop" }] },
    ])
  })
})

describe("the model", () => {
  it("must be one for chat", async () => {
    for (const model of ["gpt-4", "svc-embed"])
      expect(await open().ask({ model })).toMatchObject({
        status: 400,
        json: { code: "model_not_found", param: "model" },
      })
  })

  it("that still loads answers 503, after the shape was checked", async () => {
    const { ask, fixture } = open()
    fixture.catalogue.set("svc-lyt", { state: "loading", detail: "" })
    expect(await ask({})).toMatchObject({ status: 503, json: { code: "model_loading" } })
    expect(await ask({ max_tokens: 4097 })).toMatchObject({
      status: 400,
      json: { param: "max_tokens" },
    })
  })

  it("gets defaults, and what the client gave", async () => {
    const { ask, model } = open()
    await ask({})
    await ask({
      temperature: 0,
      top_p: 0.5,
      seed: 7,
      stop: "x",
      frequency_penalty: -2,
      presence_penalty: 2,
      logit_bias: { "15": -100 },
    })
    expect(model.runs.map((run) => run.request)).toEqual([
      {
        messages: [{ role: "user", content: [{ type: "text", text: "Selamat pagi" }] }],
        sampling: { temperature: 1, topP: 1, frequencyPenalty: 0, presencePenalty: 0 },
        maxTokens: 64,
        stop: [],
      },
      expect.objectContaining({
        sampling: {
          temperature: 0,
          topP: 0.5,
          seed: 7,
          frequencyPenalty: -2,
          presencePenalty: 2,
          logitBias: new Map([[15, -100]]),
        },
        stop: ["x"],
      }),
    ])
  })

  it("sees cache markers on blocks of a list only, and how many log-probabilities are wanted", async () => {
    const { ask, model } = open()
    const cache_control = { type: "ephemeral" }
    const marked = [
      { role: "system", content: "plain", cache_control },
      {
        role: "user",
        content: [
          { type: "text", text: "a", cache_control },
          { type: "text", text: "b" },
        ],
      },
    ]
    await ask({ messages: marked, logprobs: true, top_logprobs: 5 })
    await ask({ logprobs: true })
    await ask({ logprobs: false, top_logprobs: 0 })
    expect(model.runs[0]?.request.messages).toEqual([
      { role: "system", content: [{ type: "text", text: "plain" }] },
      {
        role: "user",
        content: [
          { type: "text", text: "a", cacheBreakpoint: true },
          { type: "text", text: "b" },
        ],
      },
    ])
    expect(model.runs.map(({ request }) => request.topLogprobs)).toEqual([5, 0, undefined])
  })

  it("sees every role, and developer as system", async () => {
    const { ask, model } = open()
    const call = { id: "call_1", type: "function", function: { name: "f", arguments: "{}" } }
    await ask({
      messages: [
        { role: "developer", content: "Be kind", cache_control: { type: "ephemeral" } },
        { role: "assistant", content: null, tool_calls: [call] },
        { role: "tool", tool_call_id: "call_1", content: [{ type: "text", text: "42" }] },
        {
          role: "user",
          content: [
            { type: "text", text: "a" },
            { type: "text", text: "b", cache_control: null },
          ],
          tool_calls: [],
          name: "Budi",
        },
      ],
    })
    expect(model.runs[0]?.request.messages).toEqual([
      { role: "system", content: [{ type: "text", text: "Be kind" }] },
      { role: "assistant", content: [], toolCalls: [{ id: "call_1", name: "f", arguments: "{}" }] },
      { role: "tool", content: [{ type: "text", text: "42" }], toolCallId: "call_1" },
      {
        role: "user",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
    ])
  })

  it("refuses a prompt over its window with the counts", async () => {
    const { ask } = open({ entry: { contextTokens: 8 } })
    const { status, json } = await ask({
      messages: [{ role: "user", content: "a b c d e f g h i j" }],
    })
    expect([status, json]).toMatchObject([400, { code: "context_length_exceeded" }])
    expect((json as { message: string }).message).toMatch(/11.*8/)
  })
})
