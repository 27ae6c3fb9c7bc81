import { CohereClientV2 } from "cohere-ai"
import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Platform, runCli, startPlatform } from "../platform.ts"

let platform: Platform
let client: OpenAI
beforeAll(async () => {
  platform = await startPlatform()
  client = new OpenAI({
    baseURL: `${platform.url}/v1`,
    apiKey: platform.credentials.api_key,
    maxRetries: 0,
  })
})
afterAll(() => platform.close())

const ask = (content: string, more: object = {}) => ({
  model: "svc-lyt",
  messages: [{ role: "user" as const, content }],
  ...more,
})

describe("the official clients", () => {
  it("chat, whole", async () => {
    const { data, response } = await client.chat.completions
      .create(ask("one two three"))
      .withResponse()
    expect(data.choices[0]).toMatchObject({
      message: { role: "assistant", content: "one two three" },
      finish_reason: "stop",
    })
    expect(data.usage).toMatchObject({
      prompt_tokens: 4,
      completion_tokens: 3,
      total_tokens: 7,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: 0,
    })
    expect(response.headers.get("x-cost-idr")).toBe("0.024")
    expect(response.headers.get("x-ratelimit-limit-requests")).toBe("1000000")
  })

  it("chat, streamed", async () => {
    const stream = await client.chat.completions.create(
      ask("one two three", {
        stream: true,
        stream_options: { include_usage: true },
      }) as OpenAI.ChatCompletionCreateParamsStreaming,
    )
    const chunks: OpenAI.ChatCompletionChunk[] = []
    for await (const chunk of stream) chunks.push(chunk)
    expect(chunks[0]?.choices[0]?.delta).toEqual({ role: "assistant", content: "" })
    expect(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("")).toBe(
      "one two three",
    )
    expect(chunks.at(-2)?.choices[0]).toMatchObject({ delta: {}, finish_reason: "stop" })
    expect(chunks.at(-1)).toMatchObject({
      choices: [],
      usage: { total_tokens: 7, cost_idr: 0.024 },
    })
  })

  it("embeddings, in base64 as the client asks and as floats", async () => {
    const both = await Promise.all([
      client.embeddings.create({ model: "svc-embed", input: ["a b", "c"] }),
      client.embeddings.create({
        model: "svc-embed",
        input: ["a b", "c"],
        encoding_format: "float",
      }),
    ])
    const [first, second] = both.map(({ data }) => data.map((item) => item.embedding))
    expect(first?.map((vector) => vector.length)).toEqual([2048, 2048])
    expect(first?.[0]?.[0]).toBeCloseTo(second?.[0]?.[0] ?? Number.NaN, 6)
    expect(Math.hypot(...(first?.[0] ?? []))).toBeCloseTo(1, 5)
  })

  it("rerank, by cohere's client", async () => {
    const cohere = new CohereClientV2({
      token: platform.credentials.api_key,
      environment: platform.url,
    })
    const { results } = await cohere.rerank({
      model: "svc-rerank",
      query: "red apple",
      documents: ["a blue car", "a red apple"],
      topN: 1,
    })
    expect(results.map((result) => result.index)).toEqual([1])
  })

  it("models", async () => {
    const ids: string[] = []
    for await (const model of client.models.list()) ids.push(model.id)
    expect(ids).toEqual([
      "svc-lyt",
      "svc-omni",
      "svc-embed",
      "svc-rerank",
      "svc-iris",
      "svc-dengar",
    ])
    await expect(client.models.retrieve("nope")).rejects.toMatchObject({
      status: 404,
      code: "not_found",
    })
  })

  it("a client that leaves pays for what was produced", async () => {
    const controller = new AbortController()
    const stream = await client.chat.completions.create(
      { ...ask("a ".repeat(500)), model: "svc-omni", stream: true },
      { signal: controller.signal },
    )
    let seen = 0
    for await (const _ of stream) if (++seen === 5) break
    controller.abort()
    const after = await client.chat.completions.create(ask("next")).withResponse()
    expect(after.response.status).toBe(200)
  })
})

describe("money", () => {
  it("a dry run says what a call may cost and takes nothing", async () => {
    const reply = await fetch(`${platform.url}/v1/chat/completions`, {
      method: "POST",
      body: JSON.stringify(ask("one two", { max_tokens: 10 })),
      headers: {
        authorization: `Bearer ${platform.credentials.api_key}`,
        "content-type": "application/json",
        "x-dry-run": "1",
      },
    })
    expect(await reply.json()).toMatchObject({
      object: "dry_run",
      endpoint: "/v1/chat/completions",
      model: "svc-lyt",
      input_tokens: 3,
      max_output_tokens: 10,
      cost_idr: 0.0645,
      would_succeed: true,
    })
  })

  it("an Idempotency-Key is charged once, and refuses another body", async () => {
    const headers = { "Idempotency-Key": `k-${Math.random()}` }
    const [first, second] = [
      await client.chat.completions.create(ask("same"), { headers }),
      await client.chat.completions.create(ask("same"), { headers }).withResponse(),
    ]
    expect(second.data.id).toBe(first.id)
    expect(second.response.headers.get("idempotent-replayed")).toBe("true")
    await expect(client.chat.completions.create(ask("other"), { headers })).rejects.toMatchObject({
      status: 409,
      code: "conflict",
    })
  })
})

describe("the CLI beside the running server", () => {
  it("makes a key that works at once", async () => {
    const { code, stdout } = await runCli(
      ["keys", "create", "-c", "config/test.yaml", "--name", "second"],
      platform.env,
    )
    expect(code).toBe(0)
    const second = new OpenAI({ baseURL: `${platform.url}/v1`, apiKey: stdout.trim() })
    expect((await second.chat.completions.create(ask("hello"))).choices[0]?.message.content).toBe(
      "hello",
    )
  })

  it("migrate has nothing to do", async () => {
    const { code, stdout } = await runCli(["migrate", "config/test.yaml"], platform.env)
    expect(code).toBe(0)
    expect(stdout).toContain("billing-ledger: up to date")
  })
})

describe("what it says of itself", () => {
  it.each(["/healthz", "/readyz", "/metrics", "/openapi.json", "/dashboard"])(
    "%s",
    async (path) => {
      expect((await fetch(platform.url + path)).status).toBe(200)
    },
  )

  it("shows secrets in no log line", () => {
    const { stderr } = platform.output()
    expect(stderr).toContain('"request_id"')
    expect(stderr).not.toContain(platform.credentials.api_key)
    expect(stderr).not.toContain(platform.credentials.password)
  })
})
