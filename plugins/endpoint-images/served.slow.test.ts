import { createHash } from "node:crypto"
import OpenAI, { toFile } from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { completedBatch, startBatch } from "../../testing/batch-client.ts"
import { plainImage } from "../../testing/images.ts"
import { type Platform, startPlatform } from "../../testing/platform.ts"
import { readPng } from "./testing/png-reader.ts"

let platform: Platform
let client: OpenAI
beforeAll(async () => {
  platform = await startPlatform({ env: { RAKIT_TEST_BATCH_POLL_MS: "100" } })
  const { api_key: apiKey } = platform.credentials
  client = new OpenAI({ baseURL: `${platform.url}/v1`, apiKey, maxRetries: 0 })
}, 60_000)
afterAll(() => platform.close())

const call = async (path: string, body?: object, headers: Record<string, string> = {}) => {
  const reply = await fetch(platform.url + path, {
    headers: {
      authorization: `Bearer ${platform.credentials.api_key}`,
      "content-type": "application/json",
      ...headers,
    },
    ...(body && { method: "POST", body: JSON.stringify(body) }),
  })
  const json = (await reply.json()) as {
    readonly jws: string
    readonly data: readonly { readonly b64_json: string }[]
  }
  return { headers: reply.headers, status: reply.status, json }
}
const apple = { model: "svc-iris", prompt: "Apel", size: "64x64", seed: 1 }
const image = (await plainImage(64, 64, "red").png().toBuffer()).toString("base64")

it("the catalogue says what the model does, and that a picture has a price", async () => {
  expect((await call("/v1/models/svc-iris")).json).toMatchObject({
    id: "svc-iris",
    modalities: ["text", "image"],
    capabilities: ["image_generation", "image_editing"],
    pricing_model: "per_image",
    pricing: { image_idr: 750 },
  })
})

describe("a picture", () => {
  it("says what it cost and how long it took, and has a receipt by which it can be made again", async () => {
    const { headers, json } = await call("/v1/images/generations", apple)
    expect(headers.get("x-cost-idr")).toBe("750")
    expect(headers.get("server-timing")).toMatch(/\btotal;dur=/)
    const receipt = await call(`/v1/receipts/${headers.get("x-call-id")}`)
    const [, payload = ""] = receipt.json.jws.split(".")
    const file = Buffer.from(json.data[0]?.b64_json ?? "", "base64")
    expect(JSON.parse(Buffer.from(payload, "base64url").toString())).toMatchObject({
      endpoint: "images.generations",
      usage: { "svc-iris": { images: 1 } },
      cost_idr: "750",
      evidence: {
        seed: 1,
        answer: `sha256:${createHash("sha256").update(file).digest("hex")}`,
        request: expect.stringMatching(/^sha256:/),
      },
    })
  })

  it("is made once under an Idempotency-Key, and a dry run makes none", async () => {
    const { seed: _, ...random } = apple
    const keyed = () => call("/v1/images/generations", random, { "idempotency-key": "apple" })
    const [first, again] = [await keyed(), await keyed()]
    expect(again.json).toEqual(first.json)
    expect(again.headers.get("idempotent-replayed")).toBe("true")
    const edit = { ...apple, image }
    const dry = await call("/v1/images/edits", edit, { "x-dry-run": "1" })
    expect(dry.json).toMatchObject({ object: "dry_run", cost_idr: 750, would_succeed: true })
  })
})

describe.each([
  ["/v1/images/generations", { ...apple }, {}],
  ["/v1/images/edits", { ...apple, image }, { strength: 0.75 }],
] as const)("a batch of %s", (endpoint, body, more) => {
  it("makes pictures at half the price, and charges for no failed line", async () => {
    const id = await startBatch(client, endpoint, {
      good: body,
      bad: { ...body, size: "9x9" },
      other: { ...body, seed: 2 },
    })
    const { request_counts, output_file_id, error_file_id, ...batch } = await completedBatch(
      client,
      id,
    )
    expect(request_counts).toEqual({ total: 3, completed: 2, failed: 1 })
    expect(batch).toMatchObject({ total_cost_idr: 750 })
    const text = await (await client.files.content(output_file_id ?? "")).text()
    const lines = text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
    expect(lines.map(({ custom_id }) => custom_id)).toEqual(["good", "other"])
    for (const [at, { response }] of lines.entries())
      expect((await readPng(response.body.data[0].b64_json)).parameters).toMatchObject({
        seed: at + 1,
        size: "64x64",
        ...more,
      })
    const errors = await (await client.files.content(error_file_id ?? "")).text()
    expect(errors).toContain("size")
  })
})

it("an edit of a form and of JSON is one call", async () => {
  const file = await toFile(Buffer.from(image, "base64"), "red.png", { type: "image/png" })
  const { model, prompt } = apple
  const own = { seed: 1, strength: 0.5 } as object
  const form = await client.images.edit({ model, prompt, image: file, ...own })
  const { json } = await call("/v1/images/edits", { model, prompt, image, ...own })
  expect(form.data).toEqual(json.data)
})
