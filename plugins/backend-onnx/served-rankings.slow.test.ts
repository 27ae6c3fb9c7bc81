import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { CohereClient } from "cohere-ai"
import { afterAll, beforeAll, expect, it } from "vitest"
import { parse, stringify } from "yaml"
import { type Platform, startPlatform } from "../../testing/platform.ts"
import { replaysOf } from "./testing/replays.ts"
import { writeTinyBert } from "./testing/tiny-bert.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-rankings-"))
const path = (name: string) => join(folder, name)
let platform: Platform
let client: CohereClient
let replays: ReturnType<typeof replaysOf>

const embedding = {
  id: "svc-embed",
  task: "embed",
  limits: { contextTokens: 1_000_000 },
  modalities: ["text"],
  capabilities: ["embeddings"],
  price: { input: 200 },
  backend: "onnx",
  sources: [{ url: `file:${path("tiny")}` }],
}

beforeAll(async () => {
  writeTinyBert(path("tiny"))
  const fixture = parse(readFileSync(join(import.meta.dirname, "../../config/test.yaml"), "utf8"))
  const { "../testing/fakes/backend.ts": _, ...others } = fixture.plugins
  const plugins = { ...others, "backend-onnx": { threads: 2 }, "model-minilm-reranker": {} }
  writeFileSync(path("rankings.yaml"), stringify({ ...fixture, plugins, models: [embedding] }))
  mkdirSync(path("data"))
  platform = await startPlatform({ config: path("rankings.yaml"), dataDir: path("data") })
  replays = replaysOf(platform, folder, path("rankings.yaml"))
  const token = platform.credentials.api_key
  client = new CohereClient({ token, environment: platform.url, maxRetries: 0 })
}, 120_000)
afterAll(async () => {
  await platform?.close()
  rmSync(folder, { recursive: true, force: true })
})

const words = "jakarta adalah ibu kota negara dan kota pelabuhan di pulau jawa".split(" ")
/** Documents of other lengths for each call, so that pairs share steps with those of others. */
const asked = (number: number) => ({
  model: "svc-rerank",
  query: `ibu kota ${number}`,
  documents: Array.from({ length: 1 + (number % 5) }, (_, i) =>
    Array.from({ length: 3 + 17 * i + number }, (_, at) => words[(at + i) % words.length]).join(
      " ",
    ),
  ),
})

it("rankings are run again by their receipts, whatever ran beside them", async () => {
  const numbers = Array.from({ length: 12 }, (_, number) => number)
  const together = await Promise.all(
    numbers.map(async (number) => {
      const { rawResponse } = await client.rerank(asked(number)).withRawResponse()
      return replays.receiptOf(rawResponse.headers.get("x-call-id"))
    }),
  )
  for (const [number, { receipt, payload }] of together.entries()) {
    expect(payload.evidence).toMatchObject({
      request: expect.stringMatching(/^sha256:/),
      config: expect.stringMatching(/^sha256:/),
      answer: expect.stringMatching(/^sha256:/),
      model: expect.any(String),
      cpu: expect.any(String),
      version: expect.any(String),
    })
    const { rawResponse } = await client.rerank(asked(number)).withRawResponse()
    const alone = await replays.receiptOf(rawResponse.headers.get("x-call-id"))
    expect(alone.payload.evidence).toEqual(payload.evidence)
    if (number % 4 === 3)
      expect(await replays.replay("same", receipt, asked(number))).toMatchObject({
        code: 0,
        stdout: "equal\n",
      })
  }
  const { receipt } = together[3]!
  // a field that the endpoint ignores, as it did then
  expect(await replays.replay("seed", receipt, { ...asked(3), seed: 7 })).toMatchObject({ code: 0 })
  expect(await replays.replay("asked", receipt, { ...asked(3), top_n: 1 })).toMatchObject({
    code: 2,
    stdout: expect.stringMatching(/^the request: .* then, .* now\nnot comparable\n$/),
  })
}, 120_000)

it("receipts of embeddings name the model's files, and no answer", async () => {
  const headers = {
    authorization: `Bearer ${platform.credentials.api_key}`,
    "content-type": "application/json",
  }
  const request = { model: "svc-embed", input: "a b c" }
  const response = await fetch(`${platform.url}/v1/embeddings`, {
    ...{ method: "POST", headers, body: JSON.stringify(request) },
  })
  expect(response.status).toBe(200)
  const { receipt, payload } = await replays.receiptOf(response.headers.get("x-call-id"))
  expect(payload.evidence).toEqual({
    version: expect.any(String),
    model: expect.stringMatching(/^[0-9a-f]{32}$/),
    cpu: expect.any(String),
  })
  expect(await replays.replay("embedding", receipt, request)).toMatchObject({
    code: 2,
    stdout: "not replayable: the receipt names no answer\n",
  })
}, 60_000)
