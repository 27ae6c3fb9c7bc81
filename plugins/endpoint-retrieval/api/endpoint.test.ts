import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { live, openQueryFixture, type QueryFixture } from "../testing/query-fixture.ts"

const other = { account: "acct_2", mode: "live" } as const

let fixture: QueryFixture
beforeAll(async () => {
  fixture = await openQueryFixture({ brokenWord: "rusak" })
  const { addDocument, addFile } = fixture
  await addDocument("file-cities", {
    chunks: [
      "ibu kota Indonesia ialah Jakarta",
      "ibu kota Malaysia ialah Kuala Lumpur",
      "kota 🏙️ tua",
    ],
  })
  await addDocument("file-manual", {
    chunks: [
      { page: 1, text: "the warranty of the pump" },
      { page: 2, text: "clean the pump each month" },
    ],
  })
  await addDocument("file-waiting", { chunks: ["ibu kota Indonesia"], state: "embedding" })
  await addDocument("file-failed", { chunks: ["ibu kota Indonesia"], state: "failed" })
  await addDocument("file-expired", { chunks: ["ibu kota Indonesia"], expiresMs: 1 })
  await addDocument("file-foreign", { chunks: ["ibu kota Indonesia"], tenant: other })
  await addDocument("file-test", {
    chunks: ["ibu kota Indonesia"],
    tenant: { ...live, mode: "test" },
  })
  addFile("file-unseen")
  addFile("file-batch", live, "batch_input")
})
afterAll(() => fixture.close())

describe("retrieval", () => {
  it("finds the best places in processed files, and costs the query's tokens", async () => {
    const { status, json, headers } = await fixture.ask({ query: "ibu kota Indonesia", top_k: 2 })
    expect(status).toBe(200)
    expect(json).toEqual({
      object: "list",
      results: [
        {
          file_id: "file-cities",
          chunk_index: 0,
          text: "ibu kota Indonesia ialah Jakarta",
          score: expect.closeTo(0.84, 2),
          start: 0,
          end: 32,
        },
        expect.objectContaining({ file_id: "file-cities", chunk_index: 1, start: 32 }),
      ],
      query_tokens: 3,
      billed_tokens: 3,
    })
    expect(headers["x-cost-idr"]).toBe("0.0045")
    expect(headers["x-embedding-space"]).toBe("fake-words-v1")
  })

  it("returns five results unless top_k says otherwise, each score within 0 and 1", async () => {
    const all = await fixture.results({ query: "pump kota" })
    expect(all).toHaveLength(5)
    for (const { score } of all) expect(score >= 0 && score <= 1).toBe(true)
    const scores = all.map(({ score }) => score)
    expect(scores).toEqual(scores.toSorted((a, b) => b - a))
    expect(await fixture.results({ query: "pump", top_k: 1 })).toHaveLength(1)
    expect(await fixture.results({ query: "pump", top_k: null, file_ids: null })).toHaveLength(5)
  })

  it("names the page and the characters of a place, or what `include` wants of them", async () => {
    const placed = async (more: object) =>
      (await fixture.results({ query: "clean month", top_k: 1, ...more }))[0]
    const plain = {
      file_id: "file-manual",
      chunk_index: 1,
      text: "clean the pump each month",
      score: expect.any(Number),
    }
    const offsets = { start: 24, end: 49 }
    expect(await placed({})).toEqual({ ...plain, page: 2, ...offsets })
    expect(await placed({ include: ["page"] })).toEqual({ ...plain, page: 2 })
    expect(await placed({ include: ["offsets"] })).toEqual({ ...plain, ...offsets })
    expect(await placed({ include: [] })).toEqual(plain)
    const [tua] = await fixture.results({ query: "tua", top_k: 1 })
    expect(tua).toMatchObject({ start: 68, end: 79 })
  })

  it("searches the named files only; one that is not processed has nothing to find", async () => {
    const found = async (...file_ids: readonly string[]) =>
      (await fixture.results({ query: "ibu kota Indonesia", file_ids })).map(
        ({ file_id, chunk_index }) => `${file_id} ${chunk_index}`,
      )
    expect((await found("file-manual")).toSorted()).toEqual(["file-manual 0", "file-manual 1"])
    expect(await found("file-cities", "file-cities", "file-manual")).toHaveLength(5)
    expect(await found("file-waiting", "file-failed", "file-unseen")).toEqual([])
  })

  it.each([
    ["file-nowhere", 404, "not_found"],
    ["file-foreign", 404, "not_found"],
    ["file-test", 404, "not_found"],
    ["file-expired", 404, "not_found"],
    ["", 404, "not_found"],
    ["'; --\0", 404, "not_found"],
    ["file-batch", 400, "invalid_request_error"],
  ])("a file %j of file_ids is %i, in a dry run, too", async (id, status, code) => {
    const body = { query: "kota", file_ids: ["file-cities", id] }
    const expected = { status, json: { code, param: "file_ids[1]" } }
    const { runs } = fixture.model
    const before = runs.length
    expect(await fixture.ask(body)).toMatchObject(expected)
    expect(await fixture.ask(body, { dryRun: true })).toMatchObject(expected)
    expect(runs).toHaveLength(before)
  })

  it("the first of many files that are missing is named, though some are looked up at once", async () => {
    const { files } = fixture.deps
    const { find } = files
    let [running, most] = [0, 0]
    Object.assign(files, {
      find: (...of: Parameters<typeof find>) =>
        Effect.gen(function* () {
          most = Math.max(most, ++running)
          // the later ones end first
          for (let turn = Number(of[1].slice(-2)); turn < 40; turn++) yield* Effect.yieldNow
          running--
          return yield* find(...of)
        }),
    })
    const missing = Array.from({ length: 40 }, (_, n) => `file-none${String(n).padStart(2, "0")}`)
    const file_ids = ["file-cities", "file-unseen20", ...missing]
    fixture.addFile("file-unseen20")
    const { status, json } = await fixture.ask({ query: "kota", file_ids })
    Object.assign(files, { find })
    expect([status, json]).toMatchObject([404, { param: "file_ids[2]" }])
    expect(most).toBe(8)
  })

  it("each tenant finds its own files only", async () => {
    for (const tenant of [other, { ...live, mode: "test" }] as const) {
      const own = await fixture.results({ query: "ibu kota Indonesia", top_k: 50 }, tenant)
      expect(own.map(({ file_id }) => file_id)).toEqual([
        tenant === other ? "file-foreign" : "file-test",
      ])
    }
    const nobody = { account: "acct_3", mode: "live" } as const
    expect(await fixture.results({ query: "ibu kota Indonesia" }, nobody)).toEqual([])
  })

  it("finds only what is processed and not expired, by words as by vectors", async () => {
    for (const hybrid of [false, true, { weight: 0 }]) {
      const found = await fixture.results({ query: "ibu kota Indonesia", top_k: 50, hybrid })
      const files = new Set(found.map(({ file_id }) => file_id))
      expect([...files].filter((id) => !["file-cities", "file-manual"].includes(id))).toEqual([])
      expect(found[0]).toMatchObject({ file_id: "file-cities", chunk_index: 0 })
    }
  })

  it.each<[string, object]>([
    ["query", { query: undefined }],
    ["query", { query: null }],
    ["query", { query: "" }],
    ["query", { query: " \n\u3000" }],
    ["query", { query: 5 }],
    ["query", { query: ["a"] }],
    ["query", { query: "x".repeat(10_001) }],
    ["file_ids", { file_ids: [] }],
    ["file_ids", { file_ids: "file-cities" }],
    ["file_ids[0]", { file_ids: [5] }],
    ["file_ids", { file_ids: Array(1_001).fill("file-cities") }],
    ["top_k", { top_k: 0 }],
    ["top_k", { top_k: 51 }],
    ["top_k", { top_k: 1.5 }],
    ["top_k", { top_k: "5" }],
    ["instruction", { instruction: 5 }],
    ["instruction", { instruction: "x".repeat(10_001) }],
    ["include", { include: "page" }],
    ["include[0]", { include: ["pages"] }],
  ])("a wrong %s is 400 with its path", async (param, more) => {
    expect(await fixture.ask({ query: "kota", ...more } as never)).toMatchObject({
      status: 400,
      json: { code: "invalid_request_error", param },
    })
  })

  it("gives the model the instruction, which is billed beside the query", async () => {
    const { ask, model } = fixture
    const { json, costMicros } = await ask({ query: "kota tua", instruction: "Find towns" })
    expect(model.runs.at(-1)?.request).toEqual({
      items: [{ type: "text", text: "kota tua" }],
      truncate: "NONE",
      instruction: "Find towns",
    })
    expect(json).toMatchObject({ query_tokens: 2, billed_tokens: 4 })
    expect(costMicros).toBe(6_000n)
  })

  it("refuses a query that the model would read in part only, in a dry run, too", async () => {
    const { ask, model } = fixture
    const fits = "kota ".repeat(model.loaded.contextTokens).trim()
    expect(await ask({ query: fits })).toMatchObject({ status: 200 })
    const before = model.runs.length
    const expected = { status: 422, json: { code: "text_too_long", param: "query" } }
    for (const body of [{ query: `${fits} tua` }, { query: fits, instruction: "Find towns" }])
      for (const dryRun of [false, true])
        expect(await ask(body, { dryRun })).toMatchObject(expected)
    expect(model.runs).toHaveLength(before)
  })

  it("a dry run says what it costs, and embeds nothing", async () => {
    const { ask, model } = fixture
    const before = model.runs.length
    const { json } = await ask({ query: "kota tua" }, { dryRun: true })
    expect(json).toMatchObject({
      object: "dry_run",
      endpoint: "/v1/retrieval",
      model: "svc-embed",
      input_tokens: 2,
      cost_idr: 0.003,
      would_succeed: true,
    })
    expect(model.runs).toHaveLength(before)
  })

  it("documents in the space of another model are not found, but counted", async () => {
    await fixture.addDocument("file-old", { chunks: ["ibu kota Indonesia"], space: "older" })
    const { json } = await fixture.ask({ query: "ibu kota Indonesia", file_ids: ["file-old"] })
    expect(json).toMatchObject({ results: [], reindexing: 1 })
  })

  it("a vector that can't be compared finds nothing: the query fails", async () => {
    const { status, json } = await fixture.ask({ query: "kota rusak" })
    expect([status, json]).toMatchObject([500, { code: "backend_error" }])
  })
})
