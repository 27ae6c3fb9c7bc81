import { describe, expect, it } from "vitest"
import { openEndpoint } from "./testing/open-endpoint.ts"

describe("the model", () => {
  it("must be one for chat", async () => {
    for (const model of ["gpt-4", "svc-embed"])
      expect(await openEndpoint().ask({ model })).toMatchObject({
        status: 400,
        json: { code: "model_not_found", param: "model" },
      })
  })

  it("may name an adapter, or the field does, or both alike", async () => {
    const adapters = ["legal", "poems"].map((id) => ({ id, sources: [] }))
    const { ask, model } = openEndpoint({ entry: { adapters } })
    for (const [body, id, strength] of [
      [{ model: "svc-lyt:legal" }, "legal", 1],
      [{ adapter: "poems" }, "poems", 1],
      [{ model: "svc-lyt:poems", adapter: { id: "poems", strength: 0.5 } }, "poems", 0.5],
    ] as const) {
      const { status, json } = await ask(body)
      expect([status, (json as { model: string }).model]).toEqual([200, `svc-lyt:${id}`])
      expect(json).toMatchObject({ usage: { prompt_tokens: expect.any(Number) } })
      expect((json as { usage: { prompt_tokens: number } }).usage.prompt_tokens).toBeGreaterThan(0)
      expect(model.runs.at(-1)?.request.adapter).toEqual({ id, strength })
    }
    for (const adapter of [null, "none", { id: "none", strength: 0.5 }]) {
      expect(await ask({ adapter })).toMatchObject({ status: 200, json: { model: "svc-lyt" } })
      expect(model.runs.at(-1)?.request.adapter).toBeUndefined()
    }
  })

  it("refuses an adapter that the model lacks, and two that differ", async () => {
    const { ask } = openEndpoint({ entry: { adapters: [{ id: "legal", sources: [] }] } })
    expect(await ask({ adapter: "poems" })).toMatchObject({
      status: 404,
      json: {
        code: "model_not_found",
        param: "adapter",
        message: expect.stringMatching("It has 'legal'"),
      },
    })
    expect(await ask({ model: "svc-lyt:poems" })).toMatchObject({
      status: 404,
      json: { code: "model_not_found", param: "model" },
    })
    expect(await ask({ model: "svc-lyt:legal", adapter: "poems" })).toMatchObject({
      status: 400,
      json: {
        code: "invalid_request_error",
        param: "adapter",
        message: expect.stringMatching(/'legal'.*'poems'/),
      },
    })
    expect(await ask({ model: "svc-lyt:legal", adapter: "none" })).toMatchObject({
      status: 400,
      json: { code: "invalid_request_error", param: "adapter" },
    })
    for (const adapter of ["", 7, {}, { id: "legal", strength: 3 }])
      expect(await ask({ adapter })).toMatchObject({ status: 400 })
  })

  it("refuses its parts as adapters, and doesn't offer them", async () => {
    const adapters = ["vision", "hearing", "legal"].map((id) => ({ id, sources: [] }))
    for (const [own, has] of [
      [adapters, "It has 'legal'."],
      [adapters.slice(0, 2), "It has none."],
    ] as const)
      for (const adapter of ["vision", { id: "hearing" }, "poems"])
        expect(await openEndpoint({ entry: { adapters: own } }).ask({ adapter })).toMatchObject({
          status: 404,
          json: { code: "model_not_found", param: "adapter", message: expect.stringMatching(has) },
        })
  })

  it("that still loads answers 503, after the shape was checked", async () => {
    const { ask, fixture } = openEndpoint()
    fixture.catalogue.set("svc-lyt", { state: "loading", detail: "" })
    expect(await ask({})).toMatchObject({ status: 503, json: { code: "model_loading" } })
    expect(await ask({ max_tokens: 4097 })).toMatchObject({
      status: 400,
      json: { param: "max_tokens" },
    })
  })

  it("gets defaults, and what the client gave", async () => {
    const { ask, model } = openEndpoint()
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
    const { ask, model } = openEndpoint()
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
    const { ask, model } = openEndpoint()
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
    const { ask } = openEndpoint({ entry: { contextTokens: 8 } })
    const { status, json } = await ask({
      messages: [{ role: "user", content: "a b c d e f g h i j" }],
    })
    expect([status, json]).toMatchObject([400, { code: "context_length_exceeded" }])
    expect((json as { message: string }).message).toMatch(/11.*8/)
  })
})
