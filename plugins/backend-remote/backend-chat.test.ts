import { afterAll, afterEach, beforeAll, expect, it } from "vitest"
import { fakeChatModel } from "../../testing/index.ts"
import { chat, chatRequest, openRemote } from "./testing/open-remote.ts"
import {
  begin,
  chunk,
  event,
  good,
  json,
  openScripted,
  type ScriptedUpstream,
  say,
} from "./testing/scripted-upstream.ts"

let one: ScriptedUpstream
let two: ScriptedUpstream
let remote: ReturnType<typeof openRemote>
beforeAll(async () => {
  one = await openScripted()
  two = await openScripted()
})
afterEach(() => remote?.close())
afterAll(() => Promise.all([one.close(), two.close()]))

const openWith = (options: object = {}, upstream: object = {}) => {
  remote = openRemote()
  return remote.open("chat", {
    upstreams: [{ url: one.url, model: "m", ...upstream }],
    ...options,
  })
}

it("recommends a temperature where the operator does", async () => {
  expect(await openWith()).not.toHaveProperty("advisedSampling")
  await remote.close()
  expect(await openWith({ recommendedTemperature: 0.6 })).toHaveProperty("advisedSampling", {
    temperature: 0.6,
    source: "config",
  })
})

it("streams an answer with the upstream's usage, key and names", async () => {
  one.play(good)
  const loaded = await openWith({}, { key: "sk-secret", name: "here" })
  const { text, finish, used, notes, error } = await chat(loaded)
  expect([text, finish, error]).toEqual(["Hello", "stop", undefined])
  expect([used.inputTokens, used.outputTokens]).toEqual([5, 2])
  expect(notes).toEqual([
    { served_by: { model: "m", upstream: "here", upstream_model: "m", attempts: 1 } },
  ])
  expect(one.asked[0]?.path).toBe("/v1/chat/completions")
  expect(one.asked[0]?.headers.authorization).toBe("Bearer sk-secret")
  expect(one.asked[0]?.body).toEqual({
    model: "m",
    messages: [{ role: "user", content: "Say hello, please." }],
    stream: true,
    stream_options: { include_usage: true },
    max_tokens: 64,
    temperature: 0.5,
    top_p: 1,
  })
})

it("hangs up when the client leaves, and meters what has come", async () => {
  let left: Promise<unknown> | undefined
  one.play((res, asked) => {
    left = asked.left
    begin(res).write(event(say("Hello")) + event(say(" there")))
  })
  const loaded = await openWith()
  const { Effect, Stream } = await import("effect")
  const { contextOf } = await import("./testing/open-remote.ts")
  const call = contextOf()
  const { run } = await Effect.runPromise(loaded.task.plan(chatRequest(), call.context))
  await Effect.runPromise(Stream.runDrain(Stream.take(run, 2)))
  await left
  expect(call.used()).toMatchObject({ outputTokens: 3 })
  expect(call.used().inputTokens).toBeGreaterThan(3)
})

it("asks the next upstream where one fails before its first event, and says so", async () => {
  one.play(json({ error: { message: "boom" } }, 500))
  two.play(good)
  remote = openRemote()
  const loaded = await remote.open("chat", {
    upstreams: [
      { url: one.url, model: "m", weight: 1000 },
      { url: two.url, model: "m", weight: 0.01 },
    ],
    affinity: false,
  })
  const { text, notes } = await chat(loaded)
  expect([text, one.asked.length, two.asked.length]).toEqual(["Hello", 1, 1])
  expect(notes).toEqual([
    { served_by: { model: "m", upstream: "u2", upstream_model: "m", attempts: 2 } },
  ])
})

it("does not retry after the first event", async () => {
  one.play((res) => {
    begin(res).write(event(say("Hel")), () => res.destroy())
  })
  const { text, error } = await chat(await openWith())
  expect([text, error?.code, one.asked.length]).toEqual(["Hel", "backend_error", 1])
})

it("refuses by name what the upstream does not keep, before anything is sent", async () => {
  one.play(good)
  const loaded = await openWith()
  const sampling = { ...chatRequest().sampling, topK: 5 }
  const { error } = await chat(loaded, chatRequest({ sampling }))
  expect(error).toMatchObject({ code: "unsupported_parameter", param: "top_k" })
  expect(one.asked).toHaveLength(0)
})

it("passes tools, and calls of them, through", async () => {
  const call = (more: object) => chunk({ tool_calls: [{ index: 0, ...more }] })
  one.play((res) =>
    begin(res).end(
      [
        call({ id: "call_1", type: "function", function: { name: "now", arguments: "" } }),
        call({ function: { arguments: '{"zone":' } }),
        call({ function: { arguments: '"UTC"}' } }),
        chunk({}, "tool_calls"),
        "[DONE]",
      ]
        .map(event)
        .join(""),
    ),
  )
  const tools = [{ name: "now", parameters: { type: "object" }, strict: true }]
  const { events, finish } = await chat(
    await openWith(),
    chatRequest({ tools, toolChoice: "required", parallelToolCalls: false }),
  )
  expect(finish).toBe("tool_calls")
  expect(events.map((one) => (one.type === "toolCall" ? one.argumentsDelta : one.type))).toEqual([
    "",
    '{"zone":',
    '"UTC"}',
    "finish",
  ])
  expect(one.asked[0]?.body).toMatchObject({
    tools: [{ type: "function", function: { name: "now", strict: true } }],
    tool_choice: "required",
    parallel_tool_calls: false,
  })
})

const picture = { type: "media", mediaType: "image/png", bytes: Buffer.from("png") } as const
const showing = {
  messages: [
    {
      role: "user" as const,
      content: [{ type: "text" as const, text: "What is it?" }, picture],
    },
  ],
}

it("sends images as data URIs, in their places, and says how many tokens they were", async () => {
  one.play((res) => {
    begin(res).write(event(say("A cat")))
    const usage = {
      prompt_tokens: 80,
      completion_tokens: 2,
      prompt_tokens_details: { image_tokens: 64 },
    }
    res.end(`${event(chunk({}, "stop"))}${event({ choices: [], usage })}data: [DONE]\n\n`)
  })
  const loaded = await openWith()
  expect(loaded.modalities).toEqual(["text", "image", "video"])
  const { text, used, error } = await chat(loaded, chatRequest(showing))
  expect([text, error]).toEqual(["A cat", undefined])
  expect([used.inputTokens, used.imageTokens]).toEqual([80, 64])
  const { messages } = one.asked.at(-1)!.body as { readonly messages: readonly object[] }
  expect(messages).toEqual([
    {
      role: "user",
      content: [
        { type: "text", text: "What is it?" },
        { type: "image_url", image_url: { url: "data:image/png;base64,cG5n" } },
      ],
    },
  ])
})

it("says how closely an image is to be looked at, if that was asked for", async () => {
  one.play((res) =>
    begin(res).end(`${event(say("A cat"))}${event(chunk({}, "stop"))}data: [DONE]\n\n`),
  )
  const loaded = await openWith()
  const bytes = Buffer.from("png")
  const media = { type: "media", mediaType: "image/png", bytes, detail: "low" } as const
  await chat(loaded, chatRequest({ messages: [{ role: "user", content: [media] }] }))
  const { messages } = one.asked.at(-1)!.body as { readonly messages: readonly object[] }
  const image_url = { url: "data:image/png;base64,cG5n", detail: "low" }
  expect(messages).toEqual([{ role: "user", content: [{ type: "image_url", image_url }] }])
})

it("shows no images to an upstream that lacks them", async () => {
  const loaded = await openWith({}, { lacks: ["images"] })
  expect(loaded.modalities).toEqual(["text"])
  const asked = one.asked.length
  const { error } = await chat(loaded, chatRequest(showing))
  expect(error).toMatchObject({ code: "unsupported_parameter", param: "messages" })
  expect(one.asked.length).toBe(asked)
})

it("falls back on a model with the adapter that the chain names, and on the model alone", async () => {
  const adapters = [{ id: "legal", sources: [] }]
  remote = openRemote(
    fakeChatModel({
      entry: { id: "small", adapters },
      says: ({ adapter }) => [adapter ? `${adapter.id} ${adapter.strength}` : "alone"],
    }),
  )
  for (const [name, said] of [
    ["small:legal", "legal 1"],
    ["small", "alone"],
  ] as const) {
    const { text, notes } = await chat(await remote.open("chat", { fallback: [name] }))
    expect([text, notes.at(-1)]).toEqual([said, { served_by: { model: name } }])
  }
})
