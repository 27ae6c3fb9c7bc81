import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI, { type APIError } from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { parse, stringify } from "yaml"
import { startBatch } from "../../testing/batch-client.ts"
import { askDashboard } from "../../testing/dashboard-client.ts"
import { brokenImages, plainImage, writtenPng } from "../../testing/images.ts"
import { type Platform, startPlatform } from "../../testing/platform.ts"
import { mmprojGguf, sightedDecoderGguf, writtenIn } from "./testing/mmproj-of-folder.ts"
import { batchReplies } from "./testing/served-chat.ts"
import { drawnPng, sightedFolder } from "./testing/sighted.ts"

/** Chats with images through the whole server, with tiny models of random weights. */
const folder = mkdtempSync(join(tmpdir(), "rakit-served-sight-"))
let platform: Platform
let client: OpenAI
let session: string
let picture: string

const dataUri = (bytes: Buffer) => `data:image/png;base64,${bytes.toString("base64")}`

beforeAll(async () => {
  const shared = parse(
    readFileSync(join(import.meta.dirname, "../../config/test.yaml"), "utf8"),
  ) as { plugins: Record<string, unknown> }
  const { "../testing/fakes/backend.ts": _, ...plugins } = shared.plugins
  const model = (id: string, of: string, modalities: readonly string[], contextTokens = 1_024) => ({
    id,
    task: "chat",
    limits: { contextTokens, maxOutputTokens: 64 },
    modalities,
    capabilities: ["chat", "vision", "tool_use", "structured_output", "prompt_caching"],
    price: { input: 1_000_000, output: 2_000_000 },
    backend: "onnx",
    sources: [{ url: `file:${sightedFolder(of)}/` }],
    options: { precision: "fp32", queueWaitMs: 45_000 },
  })
  const of = sightedFolder("llava-clip")
  const template = readFileSync(join(of, "chat_template.jinja"), "utf8")
  const decoder = writtenIn(folder, "decoder.gguf", sightedDecoderGguf(of, template, 0))
  const tower = writtenIn(folder, "mmproj.gguf", mmprojGguf(of, true))
  const config = join(folder, "sight.yaml")
  writeFileSync(
    config,
    stringify({
      ...shared,
      plugins: { ...plugins, "backend-onnx": { threads: 1 } },
      models: [
        model("svc-omni", "idefics3", ["text", "image", "video"]),
        model("svc-lyt", "llava-siglip", ["text", "image"]),
        model("svc-blind", "llava-clip", ["text"]),
        model("svc-short", "idefics3", ["text", "image"], 400),
        {
          ...model("svc-grid", "qwen2-5-vl", ["text", "image", "video"]),
          price: { input: 1_000_000, output: 2_000_000, image: 5 },
        },
        {
          ...model("svc-files", "llava-clip", ["text", "image"]),
          sources: [{ url: `file:${decoder}` }],
          adapters: [{ id: "vision", sources: [{ url: `file:${tower}` }] }],
        },
        model("svc-folder", "llava-clip", ["text", "image"]),
      ],
    }),
  )
  platform = await startPlatform({ config, env: { RAKIT_TEST_BATCH_POLL_MS: "100" } })
  const { url, credentials } = platform
  client = new OpenAI({ baseURL: `${url}/v1`, apiKey: credentials.api_key, maxRetries: 0 })
  session = (await askDashboard(url, "/dashboard/login", "", credentials)).token
  picture = dataUri(await drawnPng(301, 200))
})
afterAll(async () => {
  await platform.close()
  rmSync(folder, { recursive: true, force: true })
})

type Content = OpenAI.ChatCompletionContentPart[]
const image = (url: string): Content[number] => ({ type: "image_url", image_url: { url } })
const bodyWith = (content: Content, more: object = {}) => ({
  model: "svc-omni",
  max_tokens: 8,
  temperature: 0,
  messages: [{ role: "user" as const, content }],
  ...more,
})
const question = { type: "text", text: "What is it?" } as const
const ask = (content: Content, more: object = {}) =>
  client.chat.completions.create(
    bodyWith(content, more) as OpenAI.ChatCompletionCreateParamsNonStreaming,
  )
const refusalOf = async (work: Promise<unknown>): Promise<APIError> => {
  const error = await work.then(
    () => undefined,
    (cause: unknown) => cause,
  )
  if (!(error instanceof OpenAI.APIError)) throw new Error(`no refusal: ${error}`)
  return error
}
const balance = async (): Promise<number> => {
  const headers = { authorization: `Bearer ${session}` }
  const reply = await fetch(`${platform.url}/dashboard/me`, { headers })
  return ((await reply.json()) as { balance_idr: number }).balance_idr
}

type Usage = OpenAI.CompletionUsage & {
  readonly prompt_tokens_details: { readonly image_tokens?: number }
  readonly cost_idr: number
}

type Choices = OpenAI.ChatCompletion["choices"]

describe("a model that sees", () => {
  it("says so, counts the image's tokens and charges them as tokens", async () => {
    const models = (await client.models.list()).data as unknown as readonly object[]
    expect(models).toMatchObject([
      { id: "svc-omni", modalities: ["text", "image", "video"] },
      { id: "svc-lyt", modalities: ["text", "image"] },
      { id: "svc-blind", modalities: ["text"] },
      { id: "svc-short", modalities: ["text", "image"] },
      { id: "svc-grid", modalities: ["text", "image", "video"] },
      // a tower is no model of its own
      { id: "svc-files", modalities: ["text", "image"] },
      { id: "svc-folder", modalities: ["text", "image"] },
    ])
    expect(models[0]).toMatchObject({ capabilities: expect.arrayContaining(["vision"]) })
    const before = await balance()
    const { usage } = (await ask([image(picture), question])) as { usage?: Usage }
    expect(usage!.prompt_tokens_details.image_tokens).toBe(28)
    expect(usage!.prompt_tokens).toBeGreaterThan(28 + 20)
    const cost = usage!.prompt_tokens + 2 * usage!.completion_tokens
    expect(usage!.cost_idr).toBe(cost)
    expect(before - (await balance())).toBeCloseTo(cost, 3)
    const other = (await ask([question, image(picture)], { model: "svc-lyt" })) as { usage?: Usage }
    expect(other.usage!.prompt_tokens_details.image_tokens).toBe(9)
    const plain = (await ask([question])) as { usage?: Usage }
    expect(plain.usage!.prompt_tokens_details.image_tokens).toBeUndefined()
  })

  it("with rows and columns answers the same whole, beside texts, and as a line of a batch", async () => {
    const more = { model: "svc-grid", max_tokens: 12 }
    const seen = [question, image(picture), question, image(dataUri(await drawnPng(57, 211)))]
    const alone = await ask(seen, more)
    const { usage } = alone as { usage?: Usage }
    expect(usage!.prompt_tokens_details.image_tokens).toBe(36)
    // this model's images have a price beside that of their tokens
    expect(usage!.cost_idr).toBe(usage!.prompt_tokens + 2 * usage!.completion_tokens + 2 * 5)
    const many = await Promise.all(
      [seen, [question], seen, [image(picture)]].map((content) => ask(content as Content, more)),
    )
    const texts = many.map(({ choices }) => choices[0]!.message.content)
    expect([texts[0], texts[2]]).toEqual(Array(2).fill(alone.choices[0]!.message.content))
    const lines = { a: bodyWith(seen as Content, more) }
    const id = await startBatch(client, "/v1/chat/completions", lines)
    const replies = await batchReplies(client, id)
    expect(replies.get("a")!.choices[0]!.message.content).toBe(texts[0])
  })

  it("answers from GGUF files of a decoder and a tower as from their folder", async () => {
    const said = async (model: string) =>
      (await ask([image(picture), question], { model, max_tokens: 12 })).choices[0]!.message.content
    expect(await said("svc-files")).toBe(await said("svc-folder"))
  })

  it("sees frames of a video in their order, and counts and charges them", async () => {
    const clip = readFileSync(join(import.meta.dirname, "../endpoint-chat/fixtures/colours.mp4"))
    const url = `data:video/mp4;base64,${clip.toString("base64")}`
    const video = { type: "video_url", video_url: { url } } as never
    const before = await balance()
    const first = (await ask([video, question])) as { usage?: Usage; choices: Choices }
    const { prompt_tokens, completion_tokens, cost_idr, prompt_tokens_details } = first.usage!
    expect(prompt_tokens_details).toMatchObject({ video_frames: 3, image_tokens: 3 * 28 })
    expect(cost_idr).toBe(prompt_tokens + 2 * completion_tokens)
    expect(before - (await balance())).toBeCloseTo(cost_idr, 3)
    const again = (await ask([video, question])) as { choices: Choices }
    expect(again.choices[0]!.message).toEqual(first.choices[0]!.message)
    const cut = `data:video/mp4;base64,${clip.subarray(0, 900).toString("base64")}`
    const left = await balance()
    const broken = { type: "video_url", video_url: { url: cut } } as never
    expect(await refusalOf(ask([question, broken]))).toMatchObject({
      status: 400,
      param: "messages[0].content[1].video_url.url",
    })
    expect(await refusalOf(ask([question, video], { model: "svc-lyt" }))).toMatchObject({
      status: 400,
      code: "unsupported_parameter",
      message: expect.stringContaining("svc-lyt"),
    })
    expect(await balance()).toBe(left)
  })

  it("gives the same answer whole, streamed, among others and as a line of a batch", async () => {
    const body = bodyWith([image(picture), question])
    const whole = await ask([image(picture), question])
    const { content } = whole.choices[0]!.message
    const stream = await client.chat.completions.create({ ...body, stream: true })
    let streamed = ""
    for await (const { choices } of stream) streamed += choices[0]?.delta.content ?? ""
    expect(streamed).toBe(content)
    const other = dataUri(await drawnPng(57, 211))
    const many = await Promise.all(
      Array.from({ length: 6 }, (_, i) => ask([image(i % 2 ? other : picture), question])),
    )
    for (const [i, { choices }] of many.entries())
      if (i % 2 === 0) expect(choices[0]!.message.content).toBe(content)
    const id = await startBatch(client, "/v1/chat/completions", { a: body, b: body })
    const replies = await batchReplies(client, id)
    for (const line of ["a", "b"])
      expect(replies.get(line)!.choices[0]!.message.content).toBe(content)
  })

  it("calls tools, keeps to schemas and writes several answers beside images", async () => {
    const parameters = {
      type: "object",
      properties: { red: { type: "boolean" } },
      required: ["red"],
      additionalProperties: false,
    }
    const tools = [{ type: "function", function: { name: "look", parameters } }]
    const called = await ask([image(picture), question], {
      tools,
      tool_choice: "required",
      max_tokens: 64,
    })
    const [call] = called.choices[0]!.message.tool_calls ?? []
    expect(call).toMatchObject({ function: { name: "look" } })
    const json_schema = { name: "look", strict: true, schema: parameters }
    const formed = await ask([image(picture), question], {
      response_format: { type: "json_schema", json_schema },
      max_tokens: 64,
    })
    expect(JSON.parse(formed.choices[0]!.message.content ?? "")).toEqual({
      red: expect.any(Boolean),
    })
    const { choices } = await ask([image(picture), question], { n: 3, temperature: 1, seed: 3 })
    expect(choices).toHaveLength(3)
  })
})

describe("what is wrong with an image", () => {
  it("is a 400 with its path, and costs nothing", async () => {
    const before = await balance()
    const refused = async (what: string, url: string) => {
      const error = await refusalOf(ask([question, image(url)]))
      expect([what, error.status, error.code, error.param]).toEqual([
        what,
        400,
        "invalid_request_error",
        "messages[0].content[1].image_url.url",
      ])
    }
    for (const [what, bytes] of Object.entries(await brokenImages()))
      await refused(what, dataUri(bytes))
    await refused("30,000 x 30,000", dataUri(writtenPng(30_000, 30_000, Buffer.alloc(9))))
    await refused("text", dataUri(Buffer.from("no image")))
    await refused("a private address", "https://192.168.0.1/a.png")
    await refused("nowhere", "https://nothing.invalid/a.png")
    await refused("25 MB", dataUri(Buffer.alloc(25 * 2 ** 20)))
    const huge = await refusalOf(ask([image(dataUri(Buffer.alloc(50 * 2 ** 20)))]))
    expect(huge.status).toBe(413)
    const many = Array.from({ length: 17 }, () => image(picture))
    expect(await refusalOf(ask(many))).toMatchObject({
      status: 400,
      param: "messages[0].content[16].image_url",
    })
    expect(await refusalOf(ask(many.slice(0, 16), { model: "svc-short" }))).toMatchObject({
      status: 400,
      code: "context_length_exceeded",
    })
    const blind = await refusalOf(ask([image(picture)], { model: "svc-blind" }))
    expect(blind).toMatchObject({
      status: 400,
      code: "unsupported_parameter",
      message: expect.stringContaining("takes text only, not images"),
    })
    expect(await balance()).toBe(before)
  }, 60_000)

  it("is nothing where it is tiny", async () => {
    const pixel = dataUri(await plainImage(1, 1, "red").png().toBuffer())
    expect((await ask([image(pixel), question])).choices).toHaveLength(1)
  })
})
