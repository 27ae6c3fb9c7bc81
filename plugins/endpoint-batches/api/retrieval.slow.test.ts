import { afterAll, beforeAll, expect, it } from "vitest"
import { type Acts, type BatchPlatform, openBatchPlatform } from "../testing/batch-platform.ts"

let platform: BatchPlatform
beforeAll(async () => {
  platform = await openBatchPlatform()
})
afterAll(() => platform?.close())

const index = async ({ client }: Acts, text: string) => {
  const file = new File([text], "a.txt")
  const { id } = await client.files.create({ file, purpose: "knowledge" as "batch" })
  expect(await client.files.waitForProcessing(id, { pollInterval: 50 })).toMatchObject({
    status: "processed",
  })
  return id
}
const url = "/v1/retrieval"
const line = (custom_id: string, body: object) =>
  JSON.stringify({ custom_id, method: "POST", url, body })

it("searches in batches at half the price, each tenant its own files", async () => {
  const { live, other, balance } = platform
  const own = await index(live, "the harbour of Makassar lies in the west")
  const foreign = await index(other, "the harbour of Bira lies in the south")
  const before = await balance()
  const lines = [
    ...Array.from({ length: 20 }, (_, n) =>
      line(`line ${n}`, { query: `harbour ${n}`, top_k: 50 }),
    ),
    line("reranked", { query: "harbour of Makassar", rerank: true, hybrid: true }),
    line("foreign", { query: "harbour", file_ids: [foreign] }),
    line("empty", { query: "" }),
  ]
  const order = { endpoint: url as "/v1/embeddings" }
  const forecast = await live.create(lines.join("\n"), order, { headers: { "X-Dry-Run": "1" } })
  const batch = await live.ended((await live.create(lines.join("\n"), order)).id)
  expect(batch).toMatchObject({
    endpoint: url,
    status: "completed",
    request_counts: { total: 23, completed: 21, failed: 2 },
  })
  const found = await live.linesOf(batch.output_file_id)
  expect(found.map(({ custom_id }) => custom_id)).toEqual([
    ...Array.from({ length: 20 }, (_, n) => `line ${n}`),
    "reranked",
  ])
  for (const { response } of found)
    expect(response?.body).toMatchObject({ object: "list", results: [{ file_id: own }] })
  expect(await live.linesOf(batch.error_file_id ?? undefined)).toMatchObject([
    { custom_id: "foreign", error: { code: "not_found" } },
    { custom_id: "empty", error: { code: "invalid_request_error" } },
  ])
  // 20 queries of 2 tokens and one of 3 at Rp1,500 a million, and a search unit at Rp2.5
  const half = (20 * (2 * 1500) + 3 * 1500 + 2_500_000) / 2
  // that a file is another's shows when the line runs: its query of a token is counted
  expect(forecast).toMatchObject({ lines: 23, invalid_lines: 1, cost_idr: (half + 750) / 1e6 })
  const after = await balance()
  expect(Math.round((before.balance_idr - after.balance_idr) * 1e6)).toBe(half)
  expect(after.held_idr).toBe(0)
})
