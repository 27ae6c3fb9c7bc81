import type OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { createWith, logit_bias, openServedChat } from "./testing/served-chat.ts"

let served: Awaited<ReturnType<typeof openServedChat>>
beforeAll(async () => {
  served = await openServedChat()
}, 120_000)
afterAll(() => served?.close())

const create = (body: object) => createWith(served.client, body)
interface Usage {
  readonly prompt_tokens: number
  readonly cost_idr: number
}
const usageOf = async (body: object) => (await create(body)).usage as unknown as Usage

describe("several answers", () => {
  const body = {
    messages: [{ role: "user", content: "tell me" }],
    temperature: 1,
    max_tokens: 12,
    n: 8,
  }
  /** The account's balance, what is held of it, and the part of its calls that is paid. */
  const money = async () => {
    const { email, password } = served.platform.credentials
    const post = (path: string, from: object) =>
      fetch(served.platform.url + path, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify(from),
      })
    const { token } = (await (await post("/dashboard/login", { email, password })).json()) as {
      readonly token: string
    }
    const reply = await fetch(`${served.platform.url}/dashboard/me`, {
      headers: { authorization: `Bearer ${token}` },
    })
    return (await reply.json()) as { readonly balance_idr: number; readonly held_idr: number }
  }

  it("cost one prompt and all that they say: held, charged and shown", async () => {
    const before = await money()
    const dry = (await served.client.chat.completions
      .create({ ...body, model: "svc-omni", messages: body.messages as never } as never, {
        headers: { "X-Dry-Run": "1" },
      })
      .asResponse()
      .then((reply) => reply.json())) as Record<string, number>
    expect(dry).toMatchObject({ max_output_tokens: 8 * 12 })
    expect(dry.cost_idr).toBe(dry.input_tokens! + 2 * 8 * 12)
    const alone = await usageOf({ ...body, n: 1 })
    const { data, response } = await served.client.chat.completions
      .create({ ...body, logit_bias, model: "svc-omni" } as never)
      .withResponse()
    const { choices, usage } = data as unknown as OpenAI.ChatCompletion
    expect(choices.map(({ index }) => index)).toEqual([0, 1, 2, 3, 4, 5, 6, 7])
    expect(new Set(choices.map(({ message }) => message.content)).size).toBe(8)
    expect(usage).toMatchObject({ prompt_tokens: alone.prompt_tokens, completion_tokens: 8 * 12 })
    const cost = alone.prompt_tokens + 2 * 8 * 12
    expect(Number(response.headers.get("x-cost-idr"))).toBe(cost)
    const after = await money()
    expect(after.held_idr).toBe(0)
    expect(before.balance_idr - after.balance_idr).toBeCloseTo(cost + alone.cost_idr, 6)
  })

  it("are the same again with a seed, and the first is the one that is written alone", async () => {
    const said = async (more: object) =>
      (await create({ ...body, seed: 5, ...more })).choices.map(({ message }) => message.content)
    const eight = await said({})
    expect(await said({})).toEqual(eight)
    expect(await said({ n: 1 })).toEqual(eight.slice(0, 1))
    expect(await said({ n: 3 })).toEqual(eight.slice(0, 3))
  })

  it("each follow their own grammar, and are streamed with their log-probabilities", async () => {
    const response_format = {
      type: "json_schema",
      json_schema: {
        name: "pick",
        strict: true,
        close_on_length: true,
        schema: {
          type: "object",
          properties: { colour: { enum: ["red", "green", "blue"] } },
          required: ["colour"],
          additionalProperties: false,
        },
      },
    }
    const stream = (await create({
      ...body,
      response_format,
      max_tokens: 60,
      stream: true,
      logprobs: true,
    })) as unknown as AsyncIterable<OpenAI.ChatCompletionChunk>
    const texts = new Array(8).fill("")
    const logged = new Array(8).fill("")
    for await (const { choices } of stream)
      for (const { index, delta, logprobs } of choices) {
        texts[index] += delta.content ?? ""
        for (const { bytes } of logprobs?.content ?? [])
          logged[index] += Buffer.from(bytes!).toString()
      }
    for (const text of texts)
      expect(["red", "green", "blue"]).toContain((JSON.parse(text) as { colour: string }).colour)
    expect(logged).toEqual(texts)
  })

  it("end together when the client leaves, and what was written is paid", async () => {
    const stream = await served.client.chat.completions.create({
      ...body,
      model: "svc-omni",
      messages: body.messages as never,
      max_tokens: 1_000,
      stream: true,
    })
    for await (const _ of stream) break
    await expect.poll(async () => (await money()).held_idr).toBe(0)
  })
})
