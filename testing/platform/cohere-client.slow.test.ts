import { CohereClient, CohereClientV2 } from "cohere-ai"
import { afterAll, beforeAll, expect, it } from "vitest"
import { type Platform, startPlatform } from "../platform.ts"

let platform: Platform
let v1: CohereClient
let v2: CohereClientV2
beforeAll(async () => {
  platform = await startPlatform()
  const options = { token: platform.credentials.api_key, environment: platform.url, maxRetries: 0 }
  v1 = new CohereClient(options)
  v2 = new CohereClientV2(options)
})
afterAll(() => platform.close())

const common = { model: "svc-rerank", query: "red apple" }
const objects = [
  { text: "a blue car", title: "Cars" },
  { text: "a red apple", title: "Fruit" },
]

it("of version 1 ranks object documents by their text, and gets them back", async () => {
  const { results, meta } = await v1.rerank({
    ...common,
    documents: objects,
    returnDocuments: true,
    rankFields: ["text"],
    maxChunksPerDoc: 10,
  })
  expect(results.map(({ index, document }) => [index, document])).toEqual([
    [1, objects[1]],
    [0, objects[0]],
  ])
  expect(meta?.billedUnits?.searchUnits).toBe(1)
  const mixed = await v1.rerank({ ...common, documents: ["a red apple", objects[0]!] })
  expect(mixed.results.map(({ index }) => index)).toEqual([0, 1])
})

it("of version 2 ranks strings, with the tokens of a document that it asks for by default", async () => {
  const { results } = await v2.rerank({
    ...common,
    documents: objects.map(({ text }) => text),
    topN: 1,
    maxTokensPerDoc: 4_096,
  })
  expect(results.map(({ index }) => index)).toEqual([1])
  const cut = await v2.rerank({
    ...common,
    documents: ["a car, and a red apple", "red"],
    maxTokensPerDoc: 2,
  })
  expect(cut.results.map(({ index }) => index)).toEqual([1, 0])
})

it("of either version sends up to 64 documents with text or none, and learns what is wrong", async () => {
  for (const client of [v1, v2]) {
    const { results } = await client.rerank({ ...common, documents: ["", " ", "red"] })
    expect(results.map(({ index }) => index)).toEqual([2, 0, 1])
    const refused = (more: { query?: string; documents: string[] }) =>
      expect(client.rerank({ ...common, ...more })).rejects
    await refused({ documents: Array(65).fill("red") }).toMatchObject({
      statusCode: 400,
      body: { error: { param: "documents" } },
    })
    for (const query of ["", " \n"])
      await refused({ query, documents: ["red"] }).toMatchObject({
        statusCode: 400,
        body: { error: { code: "invalid_request_error", param: "query" } },
      })
  }
})

it("is refused by name what would change the order and can't be kept", async () => {
  const byTitle = v1.rerank({ ...common, documents: objects, rankFields: ["title"] })
  await expect(byTitle).rejects.toMatchObject({
    statusCode: 400,
    body: { error: { code: "unsupported_parameter", param: "rank_fields" } },
  })
})
