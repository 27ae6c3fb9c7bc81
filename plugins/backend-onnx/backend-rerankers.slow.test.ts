import { cpSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { Json } from "../../core/json.ts"
import type { LoadedModel, RerankRequest } from "../../core/ports/model.ts"
import { ownRerankTemplate } from "./chat-format/rerank-template.ts"
import { encoderFolder, fixtureFolder } from "./testing/fixtures.ts"
import { collect, context, failureOf, openBackend } from "./testing/open-backend.ts"

/** Rerankers as they are published, with scores of transformers: fixtures/make-*.py. */

const fixture = openBackend()
// a text alone is read by an engine with more threads
const wide = openBackend({ threads: 2 })
afterAll(() => Promise.all([fixture.close(), wide.close()]))

const rerank = async ({ task }: LoadedModel<"rerank">, request: RerankRequest) => {
  const metered = context()
  const plan = await Effect.runPromise(task.plan(request, metered))
  const scores: number[] = []
  for (const event of await collect(plan)) scores[event.index] = event.score
  expect(plan.bound).toEqual(metered.usage.at(-1))
  return { scores, usage: metered.usage.at(-1)! }
}
const jsonOf = <A>(folder: string) =>
  JSON.parse(readFileSync(join(folder, "expected.json"), "utf8")) as A
const sigmoid = (logit: number) => 1 / (1 + Math.exp(-logit))

interface Pair {
  readonly query: string
  readonly document: string
  readonly ids: readonly number[]
  readonly logit: number
}

describe.each(["bert", "xlm-roberta", "modernbert"])("the cross-encoder %s", (name) => {
  const folder = encoderFolder(`${name}-classifier`)
  const { pairs } = jsonOf<{ readonly pairs: readonly Pair[] }>(folder)
  let model: LoadedModel<"rerank">
  beforeAll(async () => {
    model = await fixture.open("rerank", folder, { contextTokens: 2048 })
  })

  test("has the scores of transformers", async () => {
    for (const { query, document, ids, logit } of pairs) {
      const { scores, usage } = await rerank(model, { query, documents: [document] })
      expect(Math.abs(scores[0]! - sigmoid(logit))).toBeLessThan(1e-4)
      expect(usage).toMatchObject({ inputTokens: ids.length, searchUnits: 1 })
    }
  })

  test("reads long documents in windows, of which the best counts", async () => {
    const words = pairs.map(({ document }) => document).join(" ")
    const long = `${words} `.repeat(12)
    const { query } = pairs[1]!
    const { scores, usage } = await rerank(model, { query, documents: [long, "sea"] })
    expect(usage.inputTokens).toBeGreaterThan(300)
    const first = await rerank(model, { query, documents: [long], maxDocumentWindows: 1 })
    expect(first.usage.inputTokens).toBeLessThanOrEqual(80)
    expect(scores[0]).toBeGreaterThanOrEqual(first.scores[0]!)
    const few = await rerank(model, { query, documents: [long], maxDocumentTokens: 5 })
    expect(few.usage.inputTokens).toBeLessThan(first.usage.inputTokens)
    expect((await rerank(model, { query, documents: [long] })).scores[0]).toBe(scores[0])
  })

  test("reads long queries in windows, up to what the entry promises", async () => {
    const query = `${pairs[2]!.document} `.repeat(99)
    const { scores, usage } = await rerank(model, { query, documents: ["sea", "", " "] })
    expect(scores.map((score) => score > 0)).toEqual([true, false, false])
    expect(usage.inputTokens).toBeGreaterThan(200)
    const refused = model.task.plan({ query: `${query} `.repeat(40), documents: ["a"] }, context())
    expect(await failureOf(refused)).toMatchObject({
      code: "context_length_exceeded",
      param: "query",
    })
  })
})

test("the default prompt of a saved cross-encoder is before the query", async () => {
  const plain = encoderFolder("bert-classifier")
  const path = join(fixture.dataDir, "prompted")
  cpSync(plain, path, { recursive: true })
  cpSync(join(encoderFolder("bert"), "modules.json"), join(path, "modules.json"))
  const saved = { model_type: "CrossEncoder", prompts: { web: "red " }, default_prompt_name: "web" }
  writeFileSync(join(path, "config_sentence_transformers.json"), JSON.stringify(saved))
  const [prompted, own] = [await fixture.open("rerank", path), await fixture.open("rerank", plain)]
  const documents = ["A red apple lies beside the green pear.", "Engine."]
  const found = await rerank(prompted, { query: "apple", documents })
  expect(found).toEqual(await rerank(own, { query: "red apple", documents }))
  expect(found.scores).not.toEqual((await rerank(own, { query: "apple", documents })).scores)
})

test.each([
  ["modernbert", "fp32"],
  ["bert", "int8"],
])("%s in %s scores a document alone as in any company, bit by bit", async (name, precision) => {
  const folder = encoderFolder(`${name}-classifier`)
  const { pairs } = jsonOf<{ readonly pairs: readonly Pair[] }>(folder)
  const model = await wide.open("rerank", folder, { options: { precision } })
  for (const { query, document, logit } of pairs) {
    const { scores } = await rerank(model, { query, documents: [document] })
    expect(Math.abs(scores[0]! - sigmoid(logit))).toBeLessThan(0.03)
  }
  const documents = Array.from({ length: 64 }, (_, i) =>
    pairs[i % 3]!.document.slice(0, 3 + ((i * 7) % 47)).repeat(1 + (i % 2)),
  )
  const { query } = pairs[0]!
  const { scores } = await rerank(model, { query, documents })
  // together with another request
  const [turned] = await Promise.all([
    rerank(model, { query, documents: [...documents].reverse() }),
    rerank(model, { query: pairs[1]!.query, documents: documents.slice(9, 30) }),
  ])
  expect(turned.scores.reverse()).toEqual(scores)
  for (const index of [0, 1, 2, 17, 63])
    expect((await rerank(model, { query, documents: [documents[index]!] })).scores).toEqual([
      scores[index],
    ])
})

describe("a folder with a classifier", () => {
  const folder = encoderFolder("bert-classifier")
  const describeAt = (path: string, task: "rerank" | "embed" = "rerank", options: Json = {}) =>
    fixture.backend.describe!({ id: "m", task, path, options, contextTokens: 2048 })

  test("is described as it is opened", async () => {
    const said = await Effect.runPromise(describeAt(folder))
    expect(said).toEqual({ contextTokens: 2048, modalities: ["text"], capabilities: [] })
    expect(await fixture.open("rerank", folder, { contextTokens: 2048 })).toMatchObject(said!)
  })

  test("is refused where it has several labels, in 4 bits, or for embeddings", async () => {
    const path = join(fixture.dataDir, "labels")
    cpSync(folder, path, { recursive: true })
    const config = JSON.parse(readFileSync(join(path, "config.json"), "utf8")) as object
    writeFileSync(
      join(path, "config.json"),
      JSON.stringify({ ...config, id2label: { 0: "no", 1: "yes" } }),
    )
    const labels = /classifier of 2 labels/
    expect((await fixture.failure("rerank", path)).message).toMatch(labels)
    expect((await failureOf(describeAt(path))).message).toMatch(labels)
    const int4 = { precision: "int4" }
    for (const refused of [
      await fixture.failure("rerank", folder, { options: int4 }),
      await failureOf(describeAt(folder, "rerank", int4)),
    ])
      expect(refused.message).toMatch(/not in int4/)
    for (const refused of [
      await fixture.failure("embed", folder),
      await failureOf(describeAt(folder, "embed")),
    ])
      expect(refused.message).toMatch(/task rerank/)
  })
})

describe("Qwen3-Reranker", () => {
  const folder = fixtureFolder("qwen3-reranker")
  const cases =
    jsonOf<
      readonly {
        readonly instruction: string | null
        readonly query: string
        readonly documents: readonly {
          readonly text: string
          readonly ids: readonly number[]
          readonly score: number
        }[]
      }[]
    >(folder)

  test.each([undefined, "qwen3-reranker"])(
    "has the scores of its model card's code (%s)",
    async (template) => {
      const options = { precision: "fp32", ...(template && { template }) }
      const model = await fixture.open("rerank", folder, { options })
      for (const { instruction, query, documents } of cases) {
        const { scores, usage } = await rerank(model, {
          query,
          documents: documents.map(({ text }) => text),
          ...(instruction !== null && { instruction }),
        })
        for (const [i, { score }] of documents.entries())
          expect(Math.abs(scores[i]! - score)).toBeLessThan(1e-4)
        expect(usage.inputTokens).toBe(documents.reduce((sum, { ids }) => sum + ids.length, 0))
        for (const [i, { text }] of documents.entries()) {
          const more = instruction === null ? {} : { instruction }
          const alone = await rerank(model, { query, documents: [text], ...more })
          expect(alone.scores[0]).toBe(scores[i])
        }
      }
    },
  )

  test("is asked as a chat model where the entry says so", async () => {
    const options = { precision: "fp32", template: "chat" }
    const model = await fixture.open("rerank", folder, { options })
    const { query, documents } = cases[0]!
    const { scores } = await rerank(model, { query, documents: [documents[0]!.text] })
    expect(scores[0]).not.toBeCloseTo(documents[0]!.score, 3)
  })

  test("is known by its template, or by its name", () => {
    const chat = "{% for message in messages %}<|im_start|>{% endfor %}"
    const own = "<Instruct>: {{ a }}\n<Query>: {{ b }}\n<Document>: {{ c }}"
    expect([
      ownRerankTemplate("/models/qwen3-0.6b", own),
      ownRerankTemplate("/models/Qwen3-Reranker-0.6B", chat),
      ownRerankTemplate("/models/qwen3_reranker.Q8_0.gguf", chat),
      ownRerankTemplate("/models/qwen3-reranker/SmolLM2", chat),
    ]).toEqual(["qwen3-reranker", "qwen3-reranker", "qwen3-reranker", "chat"])
  })
})
