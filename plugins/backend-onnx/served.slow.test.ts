import type OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { createWith, openServedChat } from "./testing/served-chat.ts"

let served: Awaited<ReturnType<typeof openServedChat>>
beforeAll(async () => {
  served = await openServedChat()
}, 120_000)
afterAll(() => served?.close())

const create = (body: object) => createWith(served.client, body)
const long = Array.from({ length: 300 }, (_, i) => String.fromCharCode(97 + (i % 7))).join("")
const marked = (question: string) => ({
  messages: [
    {
      role: "user",
      content: [
        { type: "text", text: long, cache_control: { type: "ephemeral" } },
        { type: "text", text: question },
      ],
    },
  ],
})
interface CacheUsage {
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly cache_creation_input_tokens: number
  readonly cache_read_input_tokens: number
  readonly cost_idr: number
}
const usageOf = async (body: object) => (await create(body)).usage as unknown as CacheUsage

const said = (content: string) => [{ role: "user", content }]

it("shows the window, modalities and capabilities that are served, and refuses what is beyond", async () => {
  const { data } = await served.client.models.list()
  const seen = data as unknown as readonly Readonly<Record<string, unknown>>[]
  const able = { modalities: ["text"], capabilities: ["chat", "tool_use"] }
  const large = { context_window: 2048, advertised_context_window: 1_000_000, ...able }
  expect(seen).toMatchObject([
    { id: "svc-prme", max_output_tokens: 1_500, ...large },
    { id: "svc-omni", max_output_tokens: 1_500, ...large },
    { id: "svc-lyt", context_window: 400, max_output_tokens: 100, ...able },
  ])
  expect(seen[2]).not.toHaveProperty("advertised_context_window")
  await expect(
    create({ messages: said("a"), chat_template_kwargs: { enable_thinking: true } }),
  ).rejects.toMatchObject({
    status: 400,
    code: "unsupported_parameter",
  })
  await expect(create({ messages: said("a".repeat(3_000)) })).rejects.toMatchObject({
    status: 400,
    code: "context_length_exceeded",
  })
})

describe("prompt caching", () => {
  it("writes at 1.25 times the price of input, reads at a tenth", async () => {
    const first = await usageOf(marked("one"))
    expect(first.cache_creation_input_tokens).toBeGreaterThan(300)
    expect(first.cache_read_input_tokens).toBe(0)
    // Rp1 a token in, Rp2 out
    const { cache_creation_input_tokens: written, prompt_tokens, completion_tokens } = first
    expect(first.cost_idr).toBeCloseTo(
      prompt_tokens - written + 1.25 * written + 2 * completion_tokens,
      6,
    )
    const second = await usageOf(marked("two"))
    expect(second).toMatchObject({
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: written,
      prompt_tokens_details: { cached_tokens: written },
    })
    expect(second.cost_idr).toBeCloseTo(
      second.prompt_tokens - written + 0.1 * written + 2 * second.completion_tokens,
      6,
    )
  })

  it("ignores a marker beside plain text, and is streamed with the usage", async () => {
    for (let call = 0; call < 2; call++)
      expect(
        await usageOf({
          messages: [{ role: "user", content: `z${long}`, cache_control: { type: "ephemeral" } }],
        }),
      ).toMatchObject({
        cache_creation_input_tokens: 0,
        cache_read_input_tokens: 0,
      })
    const stream = (await create({
      ...marked("three"),
      stream: true,
      stream_options: { include_usage: true },
    })) as unknown as AsyncIterable<OpenAI.ChatCompletionChunk>
    let usage: unknown
    for await (const chunk of stream) usage = chunk.usage ?? usage
    expect((usage as CacheUsage).cache_read_input_tokens).toBeGreaterThan(300)
  })
})

describe("log-probabilities", () => {
  const messages = [{ role: "user", content: "hello" }]
  it("have the official shape, and the streamed ones are the same", async () => {
    const { choices } = await create({ messages, logprobs: true, top_logprobs: 2 })
    const content = choices[0]!.logprobs!.content!
    expect(Buffer.from(content.flatMap((token) => token.bytes!)).toString()).toBe(
      choices[0]!.message.content,
    )
    expect(
      content.every(
        (token) => token.top_logprobs.length === 2 && token.top_logprobs[0]!.logprob <= 0,
      ),
    ).toBe(true)
    const stream = (await create({
      messages,
      logprobs: true,
      top_logprobs: 2,
      stream: true,
    })) as unknown as AsyncIterable<OpenAI.ChatCompletionChunk>
    const streamed = []
    for await (const chunk of stream) streamed.push(...(chunk.choices[0]?.logprobs?.content ?? []))
    expect(streamed.map((token) => token.token)).toEqual(content.map((token) => token.token))
  })
})

describe("tiers", () => {
  it("keep their own windows and lengths, and name the counts", async () => {
    const wide = { messages: [{ role: "user", content: long + long }] }
    await expect(create({ ...wide, model: "svc-lyt" })).rejects.toMatchObject({
      status: 400,
      code: "context_length_exceeded",
      message: expect.stringMatching(/6\d\d tokens.*400/),
    })
    expect((await create({ ...wide, model: "svc-prme" })).choices[0]!.finish_reason).toBe("length")
    await expect(create({ ...wide, model: "svc-lyt", max_tokens: 101 })).rejects.toMatchObject({
      status: 400,
      param: "max_tokens",
    })
  })

  it("without a queue answer 429 backend_busy at once; svc-omni waits for its turn", async () => {
    const busy = Array.from({ length: 2 }, () =>
      create({ messages: [{ role: "user", content: "go on" }], max_tokens: 1_500, stream: true }),
    )
    const streams = (await Promise.all(busy)) as unknown as { controller: AbortController }[]
    const waiting = create({ messages: [{ role: "user", content: "me too" }] })
    const refused = await create({
      messages: [{ role: "user", content: "now" }],
      model: "svc-lyt",
    }).catch((error: unknown) => error)
    expect(refused).toMatchObject({ status: 429, code: "backend_busy" })
    expect(Number((refused as { headers: Headers }).headers.get("retry-after"))).toBeGreaterThan(0)
    for (const { controller } of streams) controller.abort()
    expect((await waiting).choices[0]!.finish_reason).toBe("length")
  })
})

it("a seed says the same alone and among others", async () => {
  const body = {
    messages: [{ role: "user", content: "tell me" }],
    temperature: 1,
    seed: 11,
    max_tokens: 40,
  }
  const alone = (await create(body)).choices[0]!.message.content
  const [again] = await Promise.all([
    create(body),
    create({ ...body, seed: undefined }),
    create({ ...body, seed: 12 }),
  ])
  expect(again.choices[0]!.message.content).toBe(alone)
})
