import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { parse, stringify } from "yaml"
import { startBatch } from "../../testing/batch-client.ts"
import { askDashboard } from "../../testing/dashboard-client.ts"
import { type Platform, startPlatform } from "../../testing/platform.ts"
import { hearingFolder, sound } from "./testing/hearing-fixtures.ts"
import { batchReplies } from "./testing/served-chat.ts"
import { wavOf } from "./testing/wav-of.ts"

/** Chats with sounds through the whole server, with a tiny Qwen2-Audio of random weights. */
const folder = mkdtempSync(join(tmpdir(), "rakit-served-sounds-"))
let platform: Platform
let client: OpenAI
let session: string

beforeAll(async () => {
  const shared = parse(
    readFileSync(join(import.meta.dirname, "../../config/test.yaml"), "utf8"),
  ) as { plugins: Record<string, unknown> }
  const { "../testing/fakes/backend.ts": _, ...plugins } = shared.plugins
  const config = join(folder, "sounds.yaml")
  writeFileSync(
    config,
    stringify({
      ...shared,
      plugins: { ...plugins, "backend-onnx": { threads: 1 } },
      models: [
        {
          id: "svc-lyt",
          task: "chat",
          limits: { contextTokens: 1_024, maxOutputTokens: 64 },
          modalities: ["text", "audio"],
          capabilities: ["chat", "tool_use", "structured_output", "prompt_caching"],
          price: { input: 1_000_000, output: 2_000_000, audioSecond: 5 },
          backend: "onnx",
          sources: [{ url: `file:${hearingFolder("qwen2-audio")}/` }],
          options: { precision: "fp32", queueWaitMs: 45_000 },
        },
      ],
    }),
  )
  platform = await startPlatform({ config, env: { RAKIT_TEST_BATCH_POLL_MS: "100" } })
  const { url, credentials } = platform
  client = new OpenAI({ baseURL: `${url}/v1`, apiKey: credentials.api_key, maxRetries: 0 })
  session = (await askDashboard(url, "/dashboard/login", "", credentials)).token
})
afterAll(async () => {
  await platform.close()
  rmSync(folder, { recursive: true, force: true })
})

const heard = (seconds: number, samples = sound(seconds)) => ({
  type: "input_audio" as const,
  input_audio: { data: wavOf(samples).toString("base64"), format: "wav" as const },
})
const question = { type: "text" as const, text: "What is said?" }
const body = (content: OpenAI.ChatCompletionContentPart[], more: object = {}) => ({
  model: "svc-lyt",
  max_tokens: 8,
  temperature: 0,
  messages: [{ role: "user" as const, content }],
  ...more,
})
const ask = (content: OpenAI.ChatCompletionContentPart[], more: object = {}) =>
  client.chat.completions.create(
    body(content, more) as OpenAI.ChatCompletionCreateParamsNonStreaming,
  )
const balance = async (): Promise<number> => {
  const headers = { authorization: `Bearer ${session}` }
  const reply = await fetch(`${platform.url}/dashboard/me`, { headers })
  return ((await reply.json()) as { balance_idr: number }).balance_idr
}

interface Usage extends OpenAI.CompletionUsage {
  readonly cost_idr: number
}

describe("a chat model that hears", () => {
  it("counts a sound's tokens and seconds, and charges both", async () => {
    const before = await balance()
    const { usage } = (await ask([heard(1.3), question])) as { usage?: Usage }
    expect(usage!.prompt_tokens_details).toMatchObject({ audio_tokens: 32 })
    const cost = usage!.prompt_tokens + 2 * usage!.completion_tokens + 2 * 5
    expect(usage!.cost_idr).toBe(cost)
    expect(before - (await balance())).toBeCloseTo(cost, 3)
  })

  it("answers the same again, streamed, and as a line of a batch", async () => {
    const whole = await ask([heard(1.3), question])
    const { content } = whole.choices[0]!.message
    let streamed = ""
    for await (const chunk of await client.chat.completions.create({
      ...body([heard(1.3), question]),
      stream: true,
    }))
      streamed += chunk.choices[0]?.delta.content ?? ""
    expect(streamed).toBe(content)
    const lines = { line: body([heard(1.3), question]) }
    const replies = await batchReplies(
      client,
      await startBatch(client, "/v1/chat/completions", lines),
    )
    expect(replies.get("line")!.choices[0]!.message.content).toBe(content)
  })

  it("keeps a schema beside a sound", async () => {
    const schema = {
      type: "object",
      properties: { said: { enum: ["yes", "no"] } },
      required: ["said"],
      additionalProperties: false,
    }
    const format = { type: "json_schema", json_schema: { name: "said", strict: true, schema } }
    const answer = await ask([heard(1.3), question], { response_format: format, max_tokens: 40 })
    expect(["yes", "no"]).toContain(JSON.parse(answer.choices[0]!.message.content!).said)
  })

  it.each([
    ["is too long", heard(60), /more than 2 s/],
    ["is too short", heard(0, new Float32Array(200)), /too short/],
  ])("refuses one that %s, and charges nothing", async (_, block, why) => {
    const before = await balance()
    const error = (await ask([question, block]).then(
      () => undefined,
      (cause: unknown) => cause,
    )) as { status: number; param: string; message: string }
    expect([error.status, error.param]).toEqual([400, "messages[0].content[1].input_audio.data"])
    expect(error.message).toMatch(why)
    expect(await balance()).toBe(before)
  })
})
