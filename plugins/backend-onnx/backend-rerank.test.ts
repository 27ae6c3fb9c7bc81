import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, beforeAll, expect, test, vi } from "vitest"
import type { LoadedModel, RerankRequest } from "../../core/ports/model.ts"
import { writeGguf } from "./testing/gguf-writer.ts"
import { collect, context, failureOf, openBackend } from "./testing/open-backend.ts"
import { tinyLlama } from "./testing/tiny-llama.ts"

const fixture = openBackend()
let model: LoadedModel<"rerank">
const content = tinyLlama(6)
// the question alone has more tokens than the tiny model's usual window
const wide = { ...content, metadata: { ...content.metadata, "llama.context_length": 4096 } }

beforeAll(async () => {
  const path = join(fixture.dataDir, "tiny.gguf")
  writeFileSync(path, writeGguf(wide))
  model = await fixture.open("rerank", path, { contextTokens: 2048 })
})
afterAll(() => fixture.close())

const rerank = async (request: RerankRequest, metered = context()) => {
  const plan = await Effect.runPromise(model.task.plan(request, metered))
  const scores: number[] = []
  for (const event of await collect(plan)) scores[event.index] = event.score
  return { plan, scores, usage: metered.usage.at(-1)!, metered }
}

test("scores every document between 0 and 1, as one search unit", async () => {
  const { scores, usage, plan } = await rerank({ query: "q", documents: ["one", "two", "one"] })
  expect(scores).toHaveLength(3)
  for (const score of scores) expect(score > 0 && score < 1).toBe(true)
  expect(scores[0]).not.toBe(scores[1])
  expect(scores[0]).toBe(scores[2])
  expect(usage.searchUnits).toBe(1)
  expect(plan.bound).toEqual(usage)
})

test("a blank document scores 0, and nothing is computed for it", async () => {
  const { scores, usage } = await rerank({ query: "q", documents: ["", "one", " \n\u3000"] })
  expect([scores[0], scores[2]]).toEqual([0, 0])
  expect(usage.inputTokens).toBe(
    (await rerank({ query: "q", documents: ["one"] })).usage.inputTokens,
  )
  const { scores: none, usage: unit } = await rerank({ query: "q", documents: [" ", ""] })
  expect([none, unit.inputTokens, unit.searchUnits]).toEqual([[0, 0], 0, 1])
})

test("a document's score depends on itself, query and instruction, and not on what was read before it", async () => {
  const documents = ["the first", "the second one", "no"]
  const together = (await rerank({ query: "q", documents })).scores
  for (const [i, document] of documents.entries())
    expect((await rerank({ query: "q", documents: [document] })).scores[0]).toBe(together[i])
  expect((await rerank({ query: "other", documents })).scores[0]).not.toBeCloseTo(together[0]!, 6)
  expect((await rerank({ query: "q", documents, instruction: "judge" })).scores[0]).not.toBeCloseTo(
    together[0]!,
    6,
  )
})

test("a long document is read in windows, all of which are metered", async () => {
  const document = Array.from({ length: 300 }, (_, i) => `w${i * 7919} `).join("")
  const whole = await rerank({ query: "q", documents: [document] })
  expect(whole.usage.inputTokens).toBeGreaterThan(2048)
  expect(whole.plan.bound).toEqual(whole.usage)
  const first = await rerank({ query: "q", documents: [document], maxDocumentWindows: 1 })
  expect(first.usage.inputTokens).toBeLessThanOrEqual(2048)
  expect(whole.scores[0]).toBeGreaterThanOrEqual(first.scores[0]!)
  const { usage } = await rerank({ query: "q", documents: [document], maxDocumentTokens: 20 })
  const { usage: least } = await rerank({ query: "q", documents: ["w"] })
  expect(usage.inputTokens - least.inputTokens).toBeLessThan(25)
})

test("a long query is refused", async () => {
  expect(
    await failureOf(model.task.plan({ query: "q".repeat(3_000), documents: ["d"] }, context())),
  ).toMatchObject({ code: "context_length_exceeded", param: "query" })
})

test("the beginning that prompts share is computed once, also for the next request", async () => {
  const stats = () => {
    const { prefixCacheQueries = 0, prefixCacheHits = 0 } = model.stats!()
    return { queries: prefixCacheQueries, hits: prefixCacheHits }
  }
  const query = "a query that no other test has"
  const before = stats()
  const { usage } = await rerank({ query, documents: ["one", "two", "three"] })
  // statistics come with a step's events
  const after = await vi.waitUntil(() => stats().queries > before.queries && stats())
  expect(after.queries - before.queries).toBe(usage.inputTokens)
  // the examples were known, of the other prompts all but the documents and what follows
  expect(after.hits - before.hits).toBeGreaterThan(0.6 * usage.inputTokens)
  await rerank({ query, documents: ["four"] })
  const again = stats()
  expect((again.hits - after.hits) / (again.queries - after.queries)).toBeGreaterThan(0.8)
})

test("a vocabulary without yes and no can't rerank", async () => {
  const tokens = (content.metadata["tokenizer.ggml.tokens"] as readonly string[]).map((token) =>
    token === "yes" ? "yez" : token,
  )
  const merges = (content.metadata["tokenizer.ggml.merges"] as readonly string[]).filter(
    (merge) => merge !== "ye s",
  )
  const path = join(fixture.dataDir, "mute.gguf")
  writeFileSync(
    path,
    writeGguf({
      ...content,
      metadata: {
        ...content.metadata,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.merges": merges,
      },
    }),
  )
  const error = await fixture.failure("rerank", path)
  expect(error.message).toMatch(/'yes' and 'no' are not tokens/)
})
