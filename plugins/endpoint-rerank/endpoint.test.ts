import { Cause, Effect, Exit, Option } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { decodeBody } from "../../core/decode.ts"
import { isApiError } from "../../core/errors.ts"
import { callPathFixture, fakeChatModel, fakeRerankModel } from "../../testing/index.ts"
import { makeRerankEndpoint, rank } from "./endpoint.ts"
import { RerankBody } from "./schema.ts"

const good = {
  model: "svc-rerank",
  query: "ibu kota Indonesia",
  documents: ["Kuala Lumpur", "ibu kota Indonesia ialah Jakarta", "kota tua", ""],
}

const open = () => {
  const model = fakeRerankModel()
  const fixture = callPathFixture([model, fakeChatModel()])
  return {
    fixture,
    model,
    ask: (more: object = {}) => fixture.ask(makeRerankEndpoint(fixture), { ...good, ...more }),
  }
}

describe("rerank", () => {
  it("sorts by score, and costs one search unit", async () => {
    const { status, headers, json } = await open().ask()
    expect(status).toBe(200)
    expect(json).toEqual({
      id: "rerank-2",
      results: [
        { index: 1, relevance_score: 1 },
        { index: 2, relevance_score: 1 / 3 },
        { index: 0, relevance_score: 0 },
        { index: 3, relevance_score: 0 },
      ],
      meta: { billed_units: { search_units: 1 }, cost_idr: 2.5 },
    })
    expect(headers["x-cost-idr"]).toBe("2.5")
  })

  it("keeps the best top_n, and shows texts when asked", async () => {
    const { json } = await open().ask({ top_n: 1, return_documents: true })
    expect(json).toMatchObject({ results: [{ index: 1, document: { text: good.documents[1] } }] })
    expect((await open().ask({ top_n: 99, return_documents: null })).json).toMatchObject({
      results: { length: 4 },
    })
  })

  it("gives the model what it needs", async () => {
    const { ask, model } = open()
    await ask({ instruction: "Find capitals", top_n: 1 })
    await ask({ instruction: null, max_tokens_per_doc: 512, max_chunks_per_doc: 3 })
    const { query, documents } = good
    expect(model.runs.map((run) => run.request)).toEqual([
      { query, documents, instruction: "Find capitals" },
      { query, documents, maxDocumentTokens: 512, maxDocumentWindows: 3 },
    ])
  })

  it.each<[string, object]>([
    ["model", { model: null }],
    ["query", { query: undefined }],
    ["query", { query: "" }],
    ["query", { query: " \n\u00a0\u3000" }],
    ["query", { query: 5 }],
    ["query", { query: "x".repeat(100_001) }],
    ["documents", { documents: undefined }],
    ["documents", { documents: [] }],
    ["documents", { documents: "text" }],
    ["documents", { documents: Array(65).fill("x") }],
    ["documents[1].text", { documents: ["a", { title: "b" }] }],
    ["documents[0].text", { documents: [{ text: 5 }] }],
    ["documents[0].text", { documents: [{ text: "x".repeat(100_001) }] }],
    ["documents[0]", { documents: [5] }],
    ["max_chunks_per_doc", { max_chunks_per_doc: 0 }],
    ["max_tokens_per_doc", { max_tokens_per_doc: 0.5 }],
    ["rank_fields[0]", { rank_fields: [5] }],
    ["documents[0]", { documents: ["x".repeat(100_001)] }],
    ["top_n", { top_n: 0 }],
    ["top_n", { top_n: 1.5 }],
    ["return_documents", { return_documents: "yes" }],
    ["instruction", { instruction: 5 }],
  ])("a wrong %s is 400 with its path", async (param, more) => {
    expect(await open().ask(more)).toMatchObject({
      status: 400,
      json: { code: "invalid_request_error", param },
    })
  })

  it("says what a document must be", async () => {
    const { json } = await open().ask({ documents: [5] })
    expect(json).toMatchObject({
      message: "documents[0]: must be a string, or an object with a `text`",
    })
  })

  it("ranks the text of an object, and gives the object back as it was sent", async () => {
    const { ask, model } = open()
    const documents = [
      { text: "Kuala Lumpur", title: "A" },
      { text: "ibu kota Indonesia ialah Jakarta", id: 7, tags: ["x", { y: null }] },
      "kota tua",
    ]
    const { json } = await ask({ documents, return_documents: true })
    expect(json).toMatchObject({
      results: [
        { index: 1, document: documents[1] },
        { index: 2, document: { text: "kota tua" } },
        { index: 0, document: documents[0] },
      ],
    })
    expect(model.runs[0]?.request.documents).toEqual([
      "Kuala Lumpur",
      "ibu kota Indonesia ialah Jakarta",
      "kota tua",
    ])
  })

  it("reads as much of a document as Cohere's fields say", async () => {
    const documents = ["kota tua, ibu kota Indonesia", `${"a ".repeat(600)}ibu kota Indonesia`]
    const scores = async (more: object) => {
      const { json } = await open().ask({ documents, ...more })
      const { results } = json as { results: readonly { index: number; relevance_score: number }[] }
      return results.toSorted((a, b) => a.index - b.index).map((one) => one.relevance_score)
    }
    expect(await scores({ rank_fields: ["text"] })).toEqual([1, 1])
    expect(await scores({ max_chunks_per_doc: 10, max_tokens_per_doc: 4_096 })).toEqual([1, 1])
    expect(await scores({ max_chunks_per_doc: 1 })).toEqual([1, 0])
    expect(await scores({ max_tokens_per_doc: 2 })).toEqual([1 / 3, 0])
    expect(await open().ask({ rank_fields: ["title", "text"] })).toMatchObject({
      status: 400,
      json: { code: "unsupported_parameter", param: "rank_fields" },
    })
  })

  it("takes rerank models only, and passes the model's refusal on", async () => {
    expect(await open().ask({ model: "svc-lyt" })).toMatchObject({
      status: 400,
      json: { code: "model_not_found", param: "model" },
    })
    expect(await open().ask({ query: "a ".repeat(600) })).toMatchObject({
      status: 400,
      json: { code: "context_length_exceeded", param: "query" },
    })
  })
})

it("ranking sorts, is stable, and keeps every index once", () => {
  const events = fc
    .array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 64 })
    .map((scores) => scores.map((s, index) => ({ index, score: s / 4 })))
  fc.assert(
    fc.property(events, fc.integer({ min: 1, max: 70 }), (scored, top_n) => {
      const documents = scored.map(String)
      const results = rank([...scored].reverse(), { model: "m", query: "q", documents, top_n })
      expect(results).toHaveLength(Math.min(top_n, scored.length))
      const best = [...scored].sort((a, b) => b.score - a.score)
      expect(results.map((r) => r.index)).toEqual(best.slice(0, top_n).map((event) => event.index))
    }),
  )
})

it("any JSON is decoded or refused with an ApiError", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.jsonValue(),
        fc.dictionary(fc.constantFrom(...Object.keys(RerankBody.fields)), fc.jsonValue()),
      ),
      (json) => {
        const exit = Effect.runSyncExit(decodeBody(RerankBody, json))
        if (Exit.isFailure(exit))
          expect(isApiError(Option.getOrUndefined(Cause.findErrorOption(exit.cause)))).toBe(true)
      },
    ),
  )
})
