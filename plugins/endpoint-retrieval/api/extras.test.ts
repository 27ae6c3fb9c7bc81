import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { openQueryFixture, type QueryFixture } from "../testing/query-fixture.ts"
import type { RetrievalReply } from "./schema.ts"

const manual = [
  { page: 1, text: "the pump has a warranty of two years" },
  { page: 1, text: "the pump is blue" },
  { page: 2, text: "clean the pump each month" },
  { page: 3, text: "call us about part XJ900" },
  { page: 5, text: "the end of the pump" },
]

let fixture: QueryFixture
beforeAll(async () => {
  // room for queries that only the rerank model refuses
  fixture = await openQueryFixture({ entry: { contextTokens: 2048 } })
  const { addDocument } = fixture
  await addDocument("file-pump", { chunks: manual, metadata: { year: "2025", lang: "en" } })
  await addDocument("file-notes", {
    chunks: ["the pump of the neighbours", "nothing of note"],
    metadata: { year: "2026" },
  })
  await addDocument("file-foreign", {
    chunks: ["part XJ900 of the pump"],
    tenant: { account: "acct_2", mode: "live" },
  })
})
afterAll(() => fixture.close())

const placesOf = async (more: object): Promise<readonly string[]> =>
  (await fixture.results({ query: "the pump", top_k: 50, ...more })).map(
    ({ file_id, chunk_index }) => `${file_id.slice(5)} ${chunk_index}`,
  )
const reply = async (more: object): Promise<RetrievalReply> => {
  const { status, json } = await fixture.ask({ query: "the pump", ...more } as never)
  expect(status).toBe(200)
  return json as unknown as RetrievalReply
}

describe("filters", () => {
  it.each<[string, object, readonly string[]]>([
    ["files", { file_ids: ["file-notes"] }, ["notes 0", "notes 1"]],
    ["metadata", { metadata: { year: "2026" } }, ["notes 0", "notes 1"]],
    ["all of the metadata", { metadata: { year: "2026", lang: "en" } }, []],
    ["metadata as text", { metadata: { year: "%" } }, []],
    ["pages", { pages: { from: 2, to: 3 } }, ["pump 2", "pump 3"]],
    ["pages up to one", { pages: { to: 1 } }, ["pump 0", "pump 1"]],
    ["pages from one on", { pages: { from: 3 } }, ["pump 3", "pump 4"]],
    ["pages that no file has", { pages: { from: 4, to: 4 } }, []],
    ["pages of a file without pages", { file_ids: ["file-notes"], pages: { from: 1 } }, []],
    ["metadata and pages", { metadata: { lang: "en" }, pages: { from: 5 } }, ["pump 4"]],
  ])("by %s, of vectors and of words", async (_, filters, places) => {
    for (const more of [{}, { hybrid: { weight: 0.5 } }])
      expect((await placesOf({ filters, ...more })).toSorted()).toEqual(places)
    const byWords = await placesOf({ filters, hybrid: { weight: 0 } })
    expect(places).toEqual(expect.arrayContaining([...byWords]))
  })

  it("nothing is filtered by an empty filter, and both lists of files count", async () => {
    const search = vi.spyOn(fixture.deps.vectors, "search")
    for (const filters of [{}, null, { metadata: {} }, { metadata: {}, pages: null }])
      expect(await placesOf({ filters })).toHaveLength(7)
    // not as a list of all documents
    for (const [query] of search.mock.calls) expect(query).not.toHaveProperty("ranges")
    expect(search).toHaveBeenCalledTimes(4)
    search.mockRestore()
    const both = { file_ids: ["file-notes"], filters: { file_ids: ["file-pump"] } }
    expect(await placesOf(both)).toEqual([])
  })

  it.each<[string, object, number]>([
    ["filters.file_ids[0]", { filters: { file_ids: ["file-foreign"] } }, 404],
    ["filters.file_ids", { filters: { file_ids: [] } }, 400],
    ["filters.metadata.year", { filters: { metadata: { year: 2026 } } }, 400],
    ["filters.metadata.year", { filters: { metadata: { year: "x".repeat(513) } } }, 400],
    ["filters.metadata", { filters: { metadata: { ["x".repeat(65)]: "" } } }, 400],
    ["filters.metadata", { filters: { metadata: { year: "\0" } } }, 400],
    ["filters.metadata", { filters: { metadata: { year: "\ud800" } } }, 400],
    ["filters.pages.from", { filters: { pages: { from: 0 } } }, 400],
    ["filters.pages.to", { filters: { pages: { to: 2 ** 31 } } }, 400],
    ["filters.pages", { filters: { pages: { from: 3, to: 2 } } }, 400],
    ["filters", { filters: [] }, 400],
    ["filters.file_id", { filters: { file_id: ["file-pump"] } }, 400],
    ["filters.pages.form", { filters: { pages: { form: 2, to: 3 } } }, 400],
    ["hybrid", { hybrid: "yes" }, 400],
    ["hybrid.weight", { hybrid: { weight: 1.5 } }, 400],
    ["hybrid.weight", { hybrid: {} }, 400],
    ["hybrid.wieght", { hybrid: { weight: 0.5, wieght: 1 } }, 400],
    ["rerank", { rerank: 1 }, 400],
    ["rerank", { rerank: "" }, 400],
    ["rerank", { rerank: "svc-embed" }, 400],
    ["rerank", { rerank: "nobody" }, 400],
    ["neighbours", { neighbours: 4 }, 400],
    ["neighbours", { neighbours: -1 }, 400],
    ["explain", { explain: "yes" }, 400],
  ])("a wrong %s is named: %j", async (param, more, status) => {
    expect(await fixture.ask({ query: "the pump", ...more } as never)).toMatchObject({
      status,
      json: { param },
    })
  })
})

describe("hybrid", () => {
  it("finds by words, the rare ones first, only what the tenant has", async () => {
    const words = { query: "about the part XJ900", hybrid: { weight: 0 }, explain: true }
    const { results, explain } = await reply(words)
    expect(results[0]).toMatchObject({
      file_id: "file-pump",
      chunk_index: 3,
      score: 1,
      explain: { text: { rank: 1 }, fusion: { rank: 1, score: 1 } },
    })
    expect(explain).toMatchObject({
      candidates: { vector: 0, text: 6, fusion: 6 },
      words: [
        { word: "about", chunks: 1 },
        { word: "xj900", chunks: 1 },
        { word: "part", chunks: 1 },
        { word: "the", chunks: 5 },
      ],
    })
    expect(results.map(({ file_id }) => file_id)).not.toContain("file-foreign")
  })

  it("joins both orders: with weight 1 that of vectors alone, with true half of each", async () => {
    const query = "XJ900 the pump is blue"
    const vectors = await placesOf({ query })
    expect(await placesOf({ query, hybrid: { weight: 1 } })).toEqual(vectors)
    expect(await placesOf({ query, hybrid: false })).toEqual(vectors)
    const half = await reply({ query, hybrid: true, explain: true, top_k: 50 })
    expect(half).toEqual(await reply({ query, hybrid: { weight: 0.5 }, explain: true, top_k: 50 }))
    expect(half.results).toHaveLength(7)
    const best = Math.max(...half.results.map(({ explain }) => explain!.text?.score ?? 0))
    for (const { score, explain } of half.results) {
      const rrf = (place?: { readonly rank: number }) => (place ? 30.5 / (60 + place.rank) : 0)
      const { vector, text } = explain!
      const isStrong = text !== undefined && text.score >= best / 2
      expect(score).toBeCloseTo(rrf(vector) + rrf(isStrong ? text : undefined), 9)
      expect(score).toBe(explain!.fusion!.score)
    }
  })

  const firstOf = async (account: string, query: string) => {
    const [first] = await fixture.results({ query, hybrid: true }, { account, mode: "live" })
    return first?.text
  }

  it("finds a number that words alone find, where all chunks share its other words", async () => {
    const sections = Array.from(
      { length: 30 },
      (_, i) => `Section ${i} says how it is mounted. Article number QX-${i}7731Z.`,
    )
    const tenant = { account: "acct_articles", mode: "live" } as const
    await fixture.addDocument("file-articles", { chunks: sections, tenant })
    expect(await firstOf(tenant.account, "QX-177731Z")).toContain("QX-177731Z")
    expect(await firstOf(tenant.account, "article QX-277731Z")).toContain("QX-277731Z")
  })

  it("finds a number in a question whose other words are in all chunks", async () => {
    const numbers = Array.from({ length: 60 }, (_, i) => 90_400 + 8 * i)
    const chunks = ["is made of steel", "is stored in a dry room"].flatMap((what) =>
      numbers.map((number) => `What is known: it ${what}. Spare part number ${number}-K.`),
    )
    const tenant = { account: "acct_parts", mode: "live" } as const
    await fixture.addDocument("file-parts", { chunks, tenant })
    for (const number of numbers.filter((_, i) => i % 6 === 4))
      expect(await firstOf(tenant.account, `What is spare part ${number} made of?`)).toMatch(
        `${number}-K`,
      )
  })

  it("a query without words is one of vectors", async () => {
    expect(await placesOf({ query: "!?", hybrid: true })).toHaveLength(7)
    expect(await placesOf({ query: "qwertz uiop", hybrid: { weight: 0 } })).toEqual([])
    expect(await placesOf({ query: "'; \\ & | ! ( <-> :*", hybrid: { weight: 0 } })).toEqual([])
  })
})

describe("rerank", () => {
  it("sorts the best candidates by a model that reads both, for a search unit of it", async () => {
    const body = { query: "call about the part", rerank: true, top_k: 2, explain: true }
    const { json, costMicros } = await fixture.ask(body)
    expect(json).toMatchObject({
      results: [
        { chunk_index: 3, score: 0.75, explain: { rerank: { score: 0.75, rank: 1 } } },
        { score: 0.25 },
      ],
      billed_tokens: 4,
      search_units: 1,
      explain: { rerank_model: "svc-rerank", candidates: { vector: 7, rerank: 7 } },
    })
    expect(costMicros).toBe(2_506_000n)
    const { request } = fixture.rerank.runs.at(-1)!
    expect(request).toMatchObject({ query: body.query, documents: { length: 7 } })
  })

  it("reranks what hybrid found, by the named model and with the instruction", async () => {
    const more = { hybrid: { weight: 0 }, rerank: "svc-rerank", instruction: "Find parts" }
    const { results } = await reply({ query: "XJ900", ...more })
    expect(results).toMatchObject([{ chunk_index: 3, score: 1 }])
    expect(fixture.rerank.runs.at(-1)!.request).toEqual({
      query: "XJ900",
      documents: [manual[3]!.text],
      instruction: "Find parts",
    })
  })

  it("costs no search unit where nothing was found, and is refused before it runs", async () => {
    const nothing = await reply({ rerank: true, filters: { pages: { from: 9 } } })
    expect(nothing).toMatchObject({ results: [], search_units: 0 })
    const before = fixture.model.runs.length
    const long = { query: "a ".repeat(600), rerank: true }
    expect(await fixture.ask(long)).toMatchObject({
      status: 400,
      json: { code: "context_length_exceeded", param: "query" },
    })
    expect(fixture.model.runs).toHaveLength(before)
  })

  it("a dry run counts the search unit", async () => {
    const { json } = await fixture.ask({ query: "the pump", rerank: true }, { dryRun: true })
    expect(json).toMatchObject({ model: "svc-embed", input_tokens: 2, cost_idr: 2.503 })
  })
})

describe("neighbours and explain", () => {
  it("returns the chunks around a result, within its document", async () => {
    const around = async (query: string, neighbours: number) => {
      const [result] = (await reply({ query, neighbours, top_k: 1 })).results
      return result?.neighbours?.map((one) => one.chunk_index)
    }
    expect(await around("clean each month", 1)).toEqual([1, 3])
    expect(await around("clean each month", 3)).toEqual([0, 1, 3, 4])
    expect(await around("warranty of two years", 2)).toEqual([1, 2])
    expect(await around("the end", 1)).toEqual([3])
    expect(await around("clean each month", 0)).toBeUndefined()
    const [{ neighbours: [first] = [] } = {}] = (
      await reply({ query: "clean each month", neighbours: 1, top_k: 1 })
    ).results
    expect(first).toEqual({ chunk_index: 1, text: "the pump is blue", page: 1, start: 36, end: 52 })
    const plain = await reply({ query: "clean each month", neighbours: 1, top_k: 1, include: [] })
    expect(plain.results[0]?.neighbours?.[0]).toEqual({ chunk_index: 1, text: "the pump is blue" })
  })

  it("says the score and rank of each stage, and what searched", async () => {
    const { results, explain } = await reply({ query: "clean each month", explain: true })
    expect(explain).toEqual({
      index: "exact scan",
      embedding_model: "svc-embed",
      embedding_space: "fake-words-v1",
      dimensions: 256,
      candidates: { vector: 5 },
    })
    for (const [at, { score, explain: own }] of results.entries()) {
      expect(own).toEqual({ vector: { score: expect.any(Number), rank: at + 1 } })
      expect(score).toBe(Math.max(0, own!.vector!.score))
    }
  })

  it("without the fields a reply has what the reference says", async () => {
    const off = { hybrid: false, rerank: false, neighbours: 0, explain: false, filters: null }
    const plain = await reply({ include: [] })
    expect(await reply({ include: [], ...off })).toEqual(plain)
    expect(Object.keys(plain)).toEqual(["object", "results", "query_tokens", "billed_tokens"])
    for (const result of plain.results)
      expect(Object.keys(result)).toEqual(["file_id", "chunk_index", "text", "score"])
  })
})
