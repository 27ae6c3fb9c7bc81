import { Cause, Effect, Exit, Option, Stream } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { ApiError } from "../../core/errors.ts"
import type { EmbedRequest, RerankRequest } from "../../core/ports/model.ts"
import { contextOf, openRemote } from "./testing/open-remote.ts"
import { json, openScripted, type ScriptedUpstream } from "./testing/scripted-upstream.ts"

let upstream: ScriptedUpstream
beforeAll(async () => {
  upstream = await openScripted()
})
afterAll(() => upstream.close())

const run = async <Event>(
  planned: (
    call: ReturnType<typeof contextOf>,
  ) => Effect.Effect<{ readonly run: Stream.Stream<Event, ApiError> }, ApiError>,
) => {
  const call = contextOf()
  const exit = await Effect.runPromiseExit(
    Effect.flatMap(planned(call), ({ run }) => Stream.runCollect(run)),
  )
  const error = Exit.isFailure(exit)
    ? Option.getOrUndefined(Cause.findErrorOption(exit.cause))
    : undefined
  return { events: Exit.isSuccess(exit) ? exit.value : [], error, used: call.used() }
}

const texts = (...all: string[]) => all.map((text) => ({ type: "text", text }) as const)
const embed = async (body: unknown, request: Partial<EmbedRequest> = {}, more: object = {}) => {
  upstream.play(json(body))
  const remote = openRemote()
  const options = { upstreams: [{ url: upstream.url, model: "m" }], retries: 0, ...more }
  const loaded = await remote.open("embed", options)
  const asked: EmbedRequest = { items: texts("one", "two"), truncate: "END", ...request }
  const seen = await run((call) => loaded.task.plan(asked, call.context))
  await remote.close()
  return seen
}
const vector = (index: number, embedding: unknown) => ({ object: "embedding", index, embedding })
const data = [vector(1, [0, 2]), vector(0, [3, 4])]

describe("embeddings", () => {
  it("are normalized, in any order, with the upstream's usage", async () => {
    const { events, used } = await embed({ data, usage: { prompt_tokens: 2 } })
    expect(events.map((one) => [one.index, [...one.vector].map((x) => +x.toFixed(3))])).toEqual([
      [0, [0.6, 0.8]],
      [1, [0, 1]],
    ])
    expect(used.inputTokens).toBe(2)
    expect(upstream.asked[0]?.body).toEqual({
      model: "m",
      input: ["one", "two"],
      encoding_format: "float",
    })
  })

  it("as base64 are the same", async () => {
    const bytes = Buffer.from(new Float32Array([3, 4]).buffer).toString("base64")
    const { events } = await embed({ data: [vector(0, bytes), vector(1, bytes)] })
    expect(events[0]?.vector[0]).toBeCloseTo(0.6)
  })

  it.each([
    ["a wrong number of them", { data: data.slice(1) }],
    ["wrong dimensions", { data: [vector(0, [1, 0, 0]), vector(1, [1, 0])] }],
    ["other dimensions than are set", { data: [vector(0, [1]), vector(1, [1])] }, 2],
    ["NaN", '{"data":[{"index":0,"embedding":[NaN,1]},{"index":1,"embedding":[1,1]}]}'],
    ["null in a vector", { data: [vector(0, [null, 1]), vector(1, [1, 0])] }],
    ["zeros only", { data: [vector(0, [0, 0]), vector(1, [1, 0])] }],
    [
      "infinite numbers",
      '{"data":[{"index":0,"embedding":[1e999,1]},{"index":1,"embedding":[1,1]}]}',
    ],
    ["the same place twice", { data: [vector(0, [1, 0]), vector(0, [1, 0])] }],
    ["a place that is none", { data: [vector(0, [1, 0]), vector(7, [1, 0])] }],
    ["an error with status 200", { error: { message: "out of memory" } }],
  ])("with %s fail, and nothing is metered", async (_, body, dimensions?: number) => {
    const { error, used } = await embed(body, {}, dimensions ? { dimensions } : {})
    expect([error?.code, used.inputTokens]).toEqual(["backend_error", 0])
  })

  it("without usage, or with impossible usage, are metered within the bound", async () => {
    expect((await embed({ data })).used.inputTokens).toBe(2)
    expect((await embed({ data, usage: { prompt_tokens: -1 } })).used.inputTokens).toBe(2)
    const huge = await embed({ data, usage: { prompt_tokens: 1e9 } })
    expect(huge.used.inputTokens).toBeLessThanOrEqual(22)
  })

  it("get an instruction before each text, and refuse token ids by name", async () => {
    await embed({ data }, { instruction: "query:" })
    expect(upstream.asked[0]?.body.input).toEqual(["query: one", "query: two"])
    const ids = { type: "tokens", ids: Int32Array.of(1) } as const
    const { error } = await embed({ data }, { items: [ids] })
    expect(error).toMatchObject({ code: "unsupported_parameter", param: "input[0]" })
  })
})

const rerank = async (body: unknown, upstreamMore: object = {}, more: object = {}) => {
  upstream.play(json(body))
  const remote = openRemote()
  const at = { url: upstream.url, model: "m", ...upstreamMore }
  const loaded = await remote.open("rerank", { upstreams: [at], retries: 0 })
  const asked: RerankRequest = { query: "q", documents: ["a", " ", "b"], ...more }
  const seen = await run((call) => loaded.task.plan(asked, call.context))
  await remote.close()
  return seen
}
const both = [
  { index: 1, relevance_score: 0.9 },
  { index: 0, relevance_score: 0.1 },
]

describe("rerank", () => {
  it("has one score for each document; blank ones are not sent", async () => {
    const { events, used } = await rerank({ results: both, usage: { total_tokens: 7 } })
    expect(events.map(({ index, score }) => [index, score])).toEqual([
      [2, 0.9],
      [0, 0.1],
      [1, 0],
    ])
    expect([used.searchUnits, used.inputTokens]).toEqual([1, 7])
    expect([upstream.asked[0]?.path, upstream.asked[0]?.body]).toEqual([
      "/v1/rerank",
      { model: "m", query: "q", documents: ["a", "b"] },
    ])
  })

  it("has TEI's form, and llama.cpp's logits", async () => {
    const list = [
      { index: 0, score: 0.5 },
      { index: 1, score: 0.25 },
    ]
    expect((await rerank(list, { kind: "tei" })).events[0]?.score).toBe(0.5)
    expect([upstream.asked[0]?.path, upstream.asked[0]?.body.texts]).toEqual([
      "/rerank",
      ["a", "b"],
    ])
    const logits = { results: both.map((one) => ({ ...one, relevance_score: 0 })) }
    expect((await rerank(logits, { kind: "llamacpp" })).events[0]?.score).toBe(0.5)
  })

  it.each([
    ["an index out of range", { results: [both[0], { index: 2, relevance_score: 0.1 }] }],
    ["a negative index", { results: [both[0], { index: -1, relevance_score: 0.1 }] }],
    ["a document twice", { results: [both[0], both[0]] }],
    ["a document left out", { results: [both[0]] }],
    ["a score above 1", { results: [both[0], { index: 0, relevance_score: 3 }] }],
    ["a score that is none", { results: [both[0], { index: 0, relevance_score: null }] }],
  ])("with %s fails, and nothing is metered", async (_, body) => {
    const { error, used } = await rerank(body)
    expect([error?.code, used.searchUnits]).toEqual(["backend_error", 0])
  })

  it("refuses by name what the server does not keep", async () => {
    const { error } = await rerank({ results: both }, {}, { maxDocumentTokens: 5 })
    expect(error).toMatchObject({ code: "unsupported_parameter", param: "max_tokens_per_doc" })
  })
})
