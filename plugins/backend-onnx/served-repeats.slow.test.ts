import type OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { startBatch } from "../../testing/batch-client.ts"
import { seriesOf } from "../../testing/prometheus-text.ts"
import { apartPrecisions } from "./testing/channel-precisions.ts"
import { replaysOf } from "./testing/replays.ts"
import { batchReplies, createWith, logit_bias, openServedChat } from "./testing/served-chat.ts"

const prompt = "once upon a time there was ".repeat(12)
const base = { max_tokens: 40, messages: [{ role: "user", content: prompt }] }
const asks = {
  greedy: { ...base, temperature: 0 },
  seeded: { ...base, temperature: 1.3, top_p: 0.9, seed: 7 },
  several: { ...base, temperature: 1, seed: 8, n: 3, max_tokens: 16 },
  logprobs: { ...base, temperature: 0, logprobs: true, top_logprobs: 3, max_tokens: 12 },
  drafts: {
    ...base,
    temperature: 0.7,
    seed: 3,
    messages: [{ role: "user", content: "abc abc abc abc abc abc" }],
  },
  constrained: {
    ...base,
    temperature: 1.2,
    seed: 5,
    max_tokens: 80,
    response_format: {
      type: "json_schema",
      json_schema: {
        name: "place",
        strict: true,
        schema: {
          type: "object",
          properties: {
            city: { type: "string", maxLength: 20 },
            kind: { enum: ["town", "village", null] },
            rooms: { type: "array", items: { type: "integer" }, maxItems: 4 },
          },
          required: ["city", "kind", "rooms"],
          additionalProperties: false,
        },
      },
    },
  },
}
/** Long enough to be at work still when others come. */
const long = { ...asks.seeded, max_tokens: 1_200, messages: [{ role: "user", content: "abc" }] }

const kept = [{ precision: "int8" }, { precision: "int4" }, ...apartPrecisions]

describe.each(kept)("the same request, %j", (precisions) => {
  let served: Awaited<ReturnType<typeof openServedChat>>
  beforeAll(async () => {
    served = await openServedChat({ slots: 8, options: precisions })
  }, 120_000)
  afterAll(() => served?.close())

  const said = async (client: OpenAI) => {
    const all: string[] = []
    for (const ask of Object.values(asks))
      all.push(JSON.stringify((await createWith(client, ask)).choices))
    return all
  }
  let wanted: readonly string[]

  it("has the same answer: warm, streamed, and among others", async () => {
    wanted = await said(served.client)
    expect(await said(served.client)).toEqual(wanted)
    const stream = (await createWith(served.client, { ...asks.seeded, stream: true })) as never
    let text = ""
    for await (const chunk of stream as AsyncIterable<OpenAI.ChatCompletionChunk>)
      text += chunk.choices[0]?.delta.content ?? ""
    expect(text).toBe(JSON.parse(wanted[1]!)[0].message.content)
    const others = Array.from({ length: 7 }, (_, i) =>
      createWith(served.client, {
        messages: [{ role: "user", content: `${prompt.slice(0, 20 * i)} ${i}` }],
        temperature: 1,
        max_tokens: 600,
      }),
    )
    const among = [await said(served.client), await said(served.client)]
    await Promise.all(others)
    expect(among).toEqual([wanted, wanted])
  }, 120_000)

  const startLines = (asked: Readonly<Record<string, object>>) => {
    const bodies = Object.entries(asked).map(([name, ask]) => [
      name,
      { model: "svc-omni", logit_bias, ...ask },
    ])
    return startBatch(served.client, "/v1/chat/completions", Object.fromEntries(bodies))
  }
  /** The choices of a line, when all have ended. */
  const choicesOf = async (id: string) => {
    const replies = await batchReplies(served.client, id)
    return (name: string) => JSON.stringify(replies.get(name)?.choices)
  }

  it("has the same answer as a line of a batch", async () => {
    const choices = await choicesOf(await startLines(asks))
    expect(Object.keys(asks).map(choices)).toEqual(wanted)
  }, 120_000)

  /** Tokens that lines of batches have written so far. */
  const batchTokens = async () => {
    const text = await (await fetch(`${served.platform.url}/metrics`)).text()
    const name = 'rakit_generation_tokens_total{model_name="svc-omni",priority="batch"}'
    return seriesOf(text).get(name) ?? 0
  }

  it("has the same answer when it pauses for calls that take all slots", async () => {
    const { client } = served
    const alone = JSON.stringify((await createWith(client, long)).choices)
    const before = await batchTokens()
    const batch = await startLines({ long })
    const begun = async () => expect(await batchTokens()).toBeGreaterThan(before)
    await vi.waitFor(begun, { timeout: 60_000, interval: 5 })
    const calls = await Promise.all(
      Array.from({ length: 8 }, async (_, i) => {
        const content = `call ${i}`
        const asked = { messages: [{ role: "user", content }], max_tokens: 600, stream: true }
        const stream = (await createWith(client, asked)) as never
        return (stream as AsyncIterable<OpenAI.ChatCompletionChunk>)[Symbol.asyncIterator]()
      }),
    )
    const read = (chunks: number) =>
      Promise.all(
        calls.map(async (call) => {
          for (let i = 0; i < chunks; i++) await call.next()
        }),
      )
    await read(20)
    const paused = await batchTokens()
    await read(20)
    expect([await batchTokens(), paused < before + long.max_tokens]).toEqual([paused, true])
    await read(600)
    expect((await choicesOf(batch))("long")).toBe(alone)
  }, 120_000)

  it("is run again by its receipt, which has a seed of its own where the request has none", async () => {
    const { receiptOf, replay } = replaysOf(served.platform, served.folder, served.config)
    const { seed: _, ...unseeded } = asks.seeded
    const body = { model: "svc-omni", logit_bias, ...unseeded }
    const { response } = await served.client.chat.completions.create(body as never).withResponse()
    const { receipt, payload } = await receiptOf(response.headers.get("x-call-id"))
    expect(payload.evidence).toMatchObject({
      request: expect.stringMatching(/^sha256:/),
      answer: expect.stringMatching(/^sha256:/),
      config: expect.stringMatching(/^sha256:/),
      seed: expect.any(Number),
      model: expect.any(String),
      version: expect.any(String),
    })
    expect(await replay("same", receipt, body)).toMatchObject({ code: 0, stdout: "equal\n" })
    const evidence = { ...payload.evidence, answer: "sha256:0" }
    const other = { ...payload, evidence }
    expect(await replay("other", other, body, false)).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/signature was not checked.*\ndifferent\n$/),
    })
    expect(await replay("unsigned", other, body)).toMatchObject({
      code: 2,
      stdout: expect.stringMatching(/has no signature/),
    })
    const asked = await replay("asked", receipt, { ...body, temperature: 1 })
    expect([asked.code, asked.stdout]).toEqual([
      2,
      expect.stringMatching(/^the request: .* then, .* now\nnot comparable\n$/),
    ])
    const forged = { ...receipt, jws: `${receipt.jws.slice(0, -4)}AAAA` }
    expect(await replay("forged", forged, body)).toMatchObject({ code: 2 })
  }, 120_000)

  it("has the same answer after a restart", async () => {
    expect(await said(await served.restart())).toEqual(wanted)
  }, 120_000)
})
