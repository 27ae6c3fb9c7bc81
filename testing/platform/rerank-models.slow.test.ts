import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { CohereClient, CohereClientV2 } from "cohere-ai"
import { afterAll, beforeAll, expect, it } from "vitest"
import { stringify } from "yaml"
import { type Platform, runCli, startPlatform } from "../platform.ts"

/** Rerankers of both kinds with random weights, behind the real engine: config says which. */
const fixtures = fileURLToPath(new URL("../../plugins/backend-onnx/fixtures", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "rakit-rerankers-"))
const file = join(folder, "rakit.yaml")
const kinds = [
  ["svc-rerank", "encoders/bert-classifier"],
  ["svc-causal", "qwen3-reranker"],
] as const

let platform: Platform
let v1: CohereClient
let v2: CohereClientV2
let token: string
beforeAll(async () => {
  const { key, hash } = JSON.parse(
    (await runCli(["keys", "hash", "--name", "one", "--json"])).stdout,
  ) as { readonly key: string; readonly hash: string }
  writeFileSync(
    file,
    stringify({
      dataDir: join(folder, "data"),
      server: { host: "127.0.0.1", port: 0 },
      plugins: {
        "billing-free": {},
        "identity-static": { keys: [{ name: "one", hash }] },
        "backend-onnx": { threads: 1 },
        "endpoint-models": {},
        "endpoint-rerank": {},
      },
      models: kinds.map(([id, path]) => ({
        id,
        task: "rerank",
        backend: "onnx",
        limits: { contextTokens: 512 },
        price: { searchUnit: 2.5 },
        sources: [{ url: `file:${fixtures}/${path}/` }],
      })),
    }),
  )
  platform = await startPlatform({ config: file })
  token = key
  const options = { token, environment: platform.url, maxRetries: 0 }
  v1 = new CohereClient(options)
  v2 = new CohereClientV2(options)
}, 120_000)
afterAll(async () => {
  await platform.close()
  rmSync(folder, { recursive: true, force: true })
})

const query = "Which cities have a harbour?"
const long = "A red apple lies beside the green pear. ".repeat(120)
const documents = ["The cities lie at the sea.", long, "", `${long}The cities lie at the sea.`]

it.each(kinds)(
  "%s gives documents of any length one score each, for one search unit",
  async (model) => {
    const { results, meta } = await v2.rerank({ model, query, documents })
    const scores = [0, 1, 2, 3].map(
      (at) => results.find(({ index }) => index === at)!.relevanceScore,
    )
    expect(scores[2]).toBe(0)
    expect(results.at(-1)!.index).toBe(2)
    expect(meta?.billedUnits?.searchUnits).toBe(1)
    for (const [index, document] of documents.entries()) {
      const alone = await v2.rerank({ model, query, documents: [document] })
      expect(alone.results[0]!.relevanceScore).toBe(scores[index])
    }
    const first = await v1.rerank({
      model,
      query,
      documents: documents.map((text, id) => ({ text, id: String(id) })),
      maxChunksPerDoc: 1,
      returnDocuments: true,
    })
    for (const { index, relevanceScore, document } of first.results) {
      expect(relevanceScore).toBeLessThanOrEqual(scores[index]!)
      expect(document).toEqual({ text: documents[index], id: String(index) })
    }
  },
)

it("is billed by the search unit, and takes 64 documents", async () => {
  const rerank = async (texts: readonly string[]) =>
    fetch(`${platform.url}/v1/rerank`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
      body: JSON.stringify({ model: "svc-rerank", query, documents: texts }),
    })
  const most = await rerank(Array.from({ length: 64 }, (_, i) => `The city ${i}`))
  expect([most.status, most.headers.get("x-cost-idr")]).toEqual([200, "2.5"])
  const tooMany = await rerank(Array(65).fill("a"))
  expect([tooMany.status, tooMany.headers.get("x-cost-idr")]).not.toContain("2.5")
  expect(await tooMany.json()).toMatchObject({ error: { param: "documents" } })
})

it("takes what prompts share from the prefix cache, as the metrics say", async () => {
  const counted = async (name: string): Promise<number> => {
    const text = await (await fetch(`${platform.url}/metrics`)).text()
    const line = text.split("\n").find((one) => one.startsWith(`${name}{model_name="svc-causal"}`))
    return Number(line?.split(" ").at(-1) ?? 0)
  }
  const cached = async () => ({
    looked: await counted("rakit_prefix_cache_queries_total"),
    found: await counted("rakit_prefix_cache_hits_total"),
  })
  const before = await cached()
  const texts = Array.from({ length: 16 }, (_, i) => `The city ${i} lies at a river.`)
  await v2.rerank({ model: "svc-causal", query: "Which city has a river?", documents: texts })
  const after = await cached()
  // all prompts but the first know instruction and query
  expect((after.found - before.found) / (after.looked - before.looked)).toBeGreaterThan(0.6)
})
