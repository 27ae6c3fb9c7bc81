import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import OpenAI, { type APIError } from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { parse, stringify } from "yaml"
import { completedBatch, startBatch } from "../../testing/batch-client.ts"
import { askDashboard } from "../../testing/dashboard-client.ts"
import { brokenImages, plainImage, unusualImages } from "../../testing/images.ts"
import { type Platform, startPlatform } from "../../testing/platform.ts"
import { writeTinyBert } from "./testing/tiny-bert.ts"
import { writeTinyTower } from "./testing/tiny-tower.ts"

/** Images through the whole server, with a text encoder and a tower of random weights. */
const folder = mkdtempSync(join(tmpdir(), "rakit-images-"))
let platform: Platform
let client: OpenAI
let session: string

beforeAll(async () => {
  const shared = parse(
    readFileSync(join(import.meta.dirname, "../../config/test.yaml"), "utf8"),
  ) as { plugins: Record<string, unknown> }
  const { "../testing/fakes/backend.ts": _, ...plugins } = shared.plugins
  const model = {
    task: "embed",
    limits: { contextTokens: 4096 },
    price: { input: 1500, image: 25 },
    backend: "onnx",
    sources: [{ url: `file:${writeTinyBert(join(folder, "text"))}/` }],
    adapters: [
      { id: "images", sources: [{ url: `file:${writeTinyTower(join(folder, "tower"))}/` }] },
    ],
  }
  const config = join(folder, "images.yaml")
  writeFileSync(
    config,
    stringify({
      ...shared,
      plugins: { ...plugins, "backend-onnx": { threads: 1 } },
      models: [
        { ...model, id: "svc-embed", modalities: ["text", "image"] },
        { ...model, id: "svc-words", adapters: [] },
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

type Item = string | object
interface Reply {
  readonly data: readonly (OpenAI.Embedding & { readonly type: string })[]
  readonly usage: { readonly image_count: number }
}

/** What the contract takes beyond the client's types. */
const create = (input: readonly Item[], more: object = {}) =>
  client.embeddings.create({ model: "svc-embed", input: input as string[], ...more })
const embed = async (input: readonly Item[], more: object = {}) =>
  (await create(input, more)) as unknown as Reply
const refusalOf = async (work: Promise<unknown>): Promise<APIError> => {
  const error = await work.then(
    () => undefined,
    (cause: unknown) => cause,
  )
  if (!(error instanceof OpenAI.APIError)) throw new Error(`no refusal: ${error}`)
  return error
}
const raw = (bytes: Buffer) => ({ type: "image", image: bytes.toString("base64") })
const uri = (bytes: Buffer) => `data:image/png;base64,${bytes.toString("base64")}`
const red = () => plainImage(20, 12, "red").png().toBuffer()

const balance = async (): Promise<number> => {
  const headers = { authorization: `Bearer ${session}` }
  const reply = await fetch(`${platform.url}/dashboard/me`, { headers })
  return ((await reply.json()) as { balance_idr: number }).balance_idr
}
const spentBy = async <A>(work: () => Promise<A>) => {
  const before = await balance()
  const result = await work()
  return { result, spent: Math.round((before - (await balance())) * 1e6) / 1e6 }
}

describe("through the official client", () => {
  it("a text longer than the encoder's window is read whole, and its tokens cost once", async () => {
    const models = await client.models.list()
    expect(models.data[0]).toMatchObject({ id: "svc-embed", context_window: 4096 })
    // 4,002 tokens of 20 at once
    const long = "a b ".repeat(2_000)
    const { data, usage } = await create([`${long}`, `${long.slice(0, -12)} z z z z z z`])
    expect(usage).toMatchObject({ prompt_tokens: 8_004, truncated_count: 0 })
    expect(data[0]!.embedding).not.toEqual(data[1]!.embedding)
    const beyond = "a b ".repeat(2_400)
    const cut = await create([beyond], { truncate: "START" })
    expect(cut.usage).toMatchObject({ prompt_tokens: 4_096, truncated_count: 1 })
    const refused = await refusalOf(create(["a", beyond], { truncate: "NONE" }))
    expect(refused).toMatchObject({ status: 422, code: "text_too_long", param: "input[1]" })
  })

  it("all three forms of an image, beside texts, keep their places and cost Rp25 each", async () => {
    const bytes = await red()
    const { result, spent } = await spentBy(() =>
      embed([
        raw(bytes),
        "a b",
        { type: "image", image_url: uri(bytes) },
        { type: "image_url", image_url: { url: uri(bytes) } },
      ]),
    )
    expect(result.data.map(({ index, type }) => [index, type])).toEqual([
      [0, "image"],
      [1, "text"],
      [2, "image"],
      [3, "image"],
    ])
    for (const { embedding } of result.data) {
      expect(embedding).toHaveLength(2048)
      expect(Math.hypot(...embedding)).toBeCloseTo(1, 5)
    }
    expect(result.data[2]!.embedding).toEqual(result.data[0]!.embedding)
    expect(result.usage).toMatchObject({ prompt_tokens: 4, total_tokens: 4, image_count: 3 })
    expect(spent).toBe(75.006)
  })

  it("an image alone has no tokens, and prefixes as texts have", async () => {
    const { result, spent } = await spentBy(async () =>
      embed([raw(await red())], { dimensions: 256 }),
    )
    expect(result.data[0]!.embedding).toHaveLength(256)
    expect(result.usage).toMatchObject({ prompt_tokens: 0, image_count: 1 })
    expect(spent).toBe(25)
  })

  it("images of every kind are read", async () => {
    for (const [what, bytes] of Object.entries(await unusualImages()))
      expect.soft((await embed([raw(bytes)])).usage.image_count, what).toBe(1)
  })

  it("lines of a batch cost half, and one with a broken image fails alone", async () => {
    const line = (image: object) => ({ model: "svc-embed", input: [image] })
    const broken = (await brokenImages())["a JPEG cut off"]!
    const lines = { good: line(raw(await red())), bad: line(raw(broken)) }
    const { result, spent } = await spentBy(async () =>
      completedBatch(client, await startBatch(client, "/v1/embeddings", lines)),
    )
    expect(result.request_counts).toMatchObject({ completed: 1, failed: 1 })
    const errors = await (await client.files.content(result.error_file_id!)).text()
    expect(errors).toContain("input[0]: the image is damaged")
    expect(spent).toBe(12.5)
  }, 90_000)

  it("the space is named in the header and in the catalogue", async () => {
    const { response } = await create([raw(await red())]).withResponse()
    const model = await client.models.retrieve("svc-embed")
    expect(model).toMatchObject({
      modalities: ["text", "image"],
      embedding_space: response.headers.get("x-embedding-space"),
      pricing: { input_idr: 1500, image_idr: 25 },
    })
    const listed = await client.models.list()
    expect(listed.data.map(({ id }) => id)).toEqual(["svc-embed", "svc-words"])
  })
})

describe("one bad item", () => {
  const url = "https://example.com/a.png"
  const svg = Buffer.from(`<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>`)
  const wrongItems = async (): Promise<
    Readonly<Record<string, readonly [Item, string | RegExp]>>
  > => ({
    "an empty text": ["", "input[1]"],
    "a blank text": [" \n\t\u3000", "input[1]"],
    "base64 of another alphabet": [{ type: "image", image: "a-b_" }, "input[1].image"],
    "a URL": [{ type: "image_url", image_url: { url } }, "input[1].image_url.url"],
    "a URL in the short form": [{ type: "image", image_url: url }, "input[1].image_url"],
    "a URL as base64": [{ type: "image", image: url }, "input[1].image"],
    "a data URI of text": [
      { type: "image", image_url: "data:text/plain;base64,aGVsbG8=" },
      "input[1].image_url",
    ],
    "a data URI that says it is a PDF, and is an image": [
      { type: "image", image_url: uri(await red()).replace("image/png", "application/pdf") },
      "input[1].image_url",
    ],
    "a data URI that is not in base64": [
      { type: "image", image_url: "data:image/png,hello" },
      "input[1].image_url",
    ],
    "an SVG": [
      { type: "image", image_url: `data:image/svg+xml;base64,${svg.toString("base64")}` },
      "input[1].image_url",
    ],
    "an SVG that says it is a PNG": [
      { type: "image_url", image_url: { url: uri(svg) } },
      "input[1].image_url.url",
    ],
    "an unknown object": [{ type: "video" }, "input[1]"],
  })

  it("is 400 with its place, and nothing is charged", async () => {
    const good = raw(await red())
    const broken = Object.entries(await brokenImages()).map(
      ([what, bytes]) => [what, [raw(bytes), "input[1]"]] as const,
    )
    const { spent } = await spentBy(async () => {
      for (const [what, [item, param]] of [...Object.entries(await wrongItems()), ...broken]) {
        const error = await refusalOf(embed(["a", item, good]))
        expect.soft(error, what).toMatchObject({
          status: 400,
          code: "invalid_request_error",
          param: typeof param === "string" ? param : expect.stringMatching(param),
        })
        expect.soft(error.headers?.get("x-cost-idr"), what).toBe("0")
      }
    })
    expect(spent).toBe(0)
  })

  it("too many, an instruction beside an image, and a model without images are refused", async () => {
    const image = raw(await red())
    const { spent } = await spentBy(async () => {
      for (const input of [Array(65).fill("a"), Array(9).fill(image)])
        expect(await refusalOf(embed(input))).toMatchObject({ status: 400, param: "input" })
      expect(await refusalOf(embed(["a", image], { instruction: "x" }))).toMatchObject({
        status: 422,
        code: "instruction_with_image",
      })
      expect(await refusalOf(embed(["a", image], { model: "svc-words" }))).toMatchObject({
        status: 400,
        code: "unsupported_parameter",
        param: "input[1]",
      })
    })
    expect(spent).toBe(0)
  })

  it("does not keep others from being served, many at once", async () => {
    const bomb = raw((await brokenImages())["a PNG of 67 million pixels, all there"]!)
    const image = raw(await red())
    const [first] = (await embed([image])).data
    const replies = await Promise.all(
      Array.from({ length: 24 }, (_, i) =>
        i % 2 ? refusalOf(embed([image, bomb])) : embed([image, "a"]),
      ),
    )
    for (const reply of replies)
      if (reply instanceof Error) expect(reply).toMatchObject({ status: 400, param: "input[1]" })
      else expect(reply.data[0]!.embedding[0]).toBeCloseTo(first!.embedding[0]!, 5)
  })
})
