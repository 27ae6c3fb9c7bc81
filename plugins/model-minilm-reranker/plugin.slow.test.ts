import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { CohereClient } from "cohere-ai"
import { afterAll, beforeAll, expect, it } from "vitest"
import { type Platform, runCli, startPlatform } from "../../testing/platform.ts"

const folder = mkdtempSync(join(tmpdir(), "rakit-reranker-"))
let platform: Platform
let client: CohereClient
beforeAll(async () => {
  const made = await runCli(["keys", "hash", "--name", "app", "--json"])
  const { key, hash } = JSON.parse(made.stdout) as { readonly key: string; readonly hash: string }
  const config = join(import.meta.dirname, "testing/rakit.yaml")
  platform = await startPlatform({
    ...{ config, database: "embedded", dataDir: folder },
    env: { HOST: "127.0.0.1", RAKIT_KEY_HASH: hash },
  })
  client = new CohereClient({ token: key, environment: platform.url, maxRetries: 0 })
})
afterAll(async () => {
  await platform?.close()
  rmSync(folder, { recursive: true, force: true })
})

interface Expected {
  readonly query: string
  readonly documents: readonly string[]
  /** What transformers computes with the same weights; train/expected.py writes them. */
  readonly scores: readonly number[]
}

it("gives the scores that transformers computes, the best one first", async () => {
  const file = readFileSync(join(import.meta.dirname, "testing/scores.json"), "utf8")
  for (const { query, documents, scores } of JSON.parse(file) as readonly Expected[]) {
    const asked = { model: "svc-rerank", query, documents: [...documents] }
    const { results } = await client.rerank(asked)
    for (const { index, relevanceScore } of results)
      expect(Math.abs(relevanceScore - scores[index]!)).toBeLessThan(1e-3)
    expect(results[0]!.index).toBe(scores.indexOf(Math.max(...scores)))
    expect(results.at(-1)!.relevanceScore).toBeLessThan(0.1)
  }
})
