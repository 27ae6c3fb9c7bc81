import OpenAI, { toFile } from "openai"
import { afterAll, beforeAll, expect, it } from "vitest"
import { addAccount, askDashboard, errorOf } from "../../../testing/dashboard-client.ts"
import { type Platform, startPlatform } from "../../../testing/platform.ts"
import { linesOf, makePdf } from "../testing/make-pdf.ts"
import type { RetrievalReply } from "./schema.ts"

/** The whole server through the official client, with models that have no weights. */

const harbours = [
  "Makassar 🚢 has a harbour in the west, and ships sail from it to Surabaya each Monday.",
  "Tickets are sold at the gate. Part XJ900 of the crane is spare.",
  "Bread is baked in the morning, long before the first ship comes in.",
]
const text = harbours.map((line) => `${line} ${line}`).join("\n\n")

let platform: Platform
let client: OpenAI
let other: OpenAI
let sandbox: OpenAI
const ids: Record<"harbours" | "bread" | "foreign" | "test", string> = {
  harbours: "",
  bread: "",
  foreign: "",
  test: "",
}

const clientOf = (apiKey: string) =>
  new OpenAI({ baseURL: `${platform.url}/v1`, apiKey, maxRetries: 0 })

const upload = async (by: OpenAI, content: string | Buffer, name: string, metadata?: object) => {
  const file = await toFile(Buffer.from(content as string), name)
  const created = await by.files.create({ file, purpose: "knowledge", metadata } as never)
  const { status } = await by.files.waitForProcessing(created.id, { pollInterval: 50 })
  expect(status).toBe("processed")
  return created.id
}

const ask = (body: object, by = client, headers = {}) =>
  by.post("/retrieval", { body, headers }) as Promise<RetrievalReply>

beforeAll(async () => {
  platform = await startPlatform()
  client = clientOf(platform.credentials.api_key)
  const { email, password } = platform.credentials
  const { token } = await askDashboard(platform.url, "/dashboard/login", "", { email, password })
  other = clientOf((await addAccount(platform.url, token)).key)
  const key = { name: "sandbox", test: true }
  sandbox = clientOf((await askDashboard(platform.url, "/dashboard/keys", token, key)).key)
  ids.harbours = await upload(client, text, "harbours.md", { year: "2025", place: "Makassar" })
  ids.bread = await upload(client, "Bread is baked at night.", "bread.txt", { year: "2026" })
  ids.foreign = await upload(other, "The foreign harbour with part XJ900", "foreign.txt")
  ids.test = await upload(sandbox, "The harbour of the sandbox, part XJ900", "sandbox.txt")
}, 120_000)
afterAll(() => platform.close())

it("shows the place of each result: its characters are those of the file", async () => {
  const { object, results, query_tokens, billed_tokens } = await ask({ query: "harbour" })
  expect(object).toBe("list")
  expect([query_tokens, billed_tokens]).toEqual([1, 1])
  expect(results.length).toBeGreaterThan(1)
  const contents = new Map([
    [ids.harbours, Array.from(text)],
    [ids.bread, Array.from("Bread is baked at night.")],
  ])
  for (const { file_id, start, end, ...result } of results)
    expect(contents.get(file_id)!.slice(start, end).join("")).toBe(result.text)
})

it("names the page of a result in a PDF, and searches some pages only", async () => {
  const lines = ["The warranty is two years.", "Wash the filter in warm water.", "Call for spares."]
  const id = await upload(
    client,
    makePdf(lines.map((line) => ({ content: linesOf(line) }))),
    "a.pdf",
  )
  const search = async (more: object) =>
    (await ask({ query: "Wash the filter", file_ids: [id], ...more })).results
  const text = "[Page 2]\nWash the filter in warm water."
  const [first] = await search({ neighbours: 1, top_k: 1 })
  expect(first).toMatchObject({ page: 2, start: 37, end: 37 + text.length, text })
  expect(first?.neighbours?.map(({ page }) => page)).toEqual([1, 3])
  const onPages = async (pages: object) =>
    (await search({ filters: { pages }, hybrid: true })).map(({ page }) => page)
  expect(await onPages({ from: 2 })).toEqual([2, 3])
  expect(await onPages({ from: 3, to: 9 })).toEqual([3])
  expect(await onPages({ from: 4 })).toEqual([])
  await client.files.delete(id)
})

it.each([{}, { hybrid: true }, { rerank: true }, { hybrid: { weight: 0 }, rerank: "svc-rerank" }])(
  "each tenant finds its own files only, with %j",
  async (more) => {
    const owners = [
      [client, [ids.harbours, ids.bread]],
      [other, [ids.foreign]],
      [sandbox, [ids.test]],
    ] as const
    const query = { query: "harbour with part XJ900", top_k: 50, ...more }
    for (const [by, own] of owners) {
      const { results } = await ask(query, by)
      expect(results.length).toBeGreaterThan(0)
      expect(own).toEqual(expect.arrayContaining(results.map(({ file_id }) => file_id)))
      for (const [at, foreign] of Object.values(ids).entries())
        if (!own.includes(foreign as never))
          expect(
            await errorOf(ask({ ...query, file_ids: [own[0], foreign] }, by)),
            `file ${at}`,
          ).toMatchObject({ status: 404, param: "file_ids[1]" })
    }
  },
)

it("filters, reranks, explains and returns neighbours of what real ingest stored", async () => {
  const of2026 = await ask({ query: "bread", filters: { metadata: { year: "2026" } } })
  expect(of2026.results.map(({ file_id }) => file_id)).toEqual([ids.bread])
  const { results, search_units, explain } = await ask({
    query: "part XJ900",
    top_k: 1,
    hybrid: true,
    rerank: true,
    neighbours: 1,
    explain: true,
    filters: { file_ids: [ids.harbours] },
  })
  expect(search_units).toBe(1)
  expect(explain).toMatchObject({
    embedding_model: "svc-embed",
    rerank_model: "svc-rerank",
    words: expect.arrayContaining([{ word: "xj900", chunks: expect.any(Number) }]),
  })
  expect(results).toMatchObject([
    {
      text: expect.stringContaining("XJ900"),
      neighbours: expect.any(Array),
      explain: { vector: {}, text: {}, fusion: {}, rerank: { rank: 1 } },
    },
  ])
})

it("costs the tokens of the query, and a search unit with rerank; a dry run nothing", async () => {
  const costOf = async (body: object, by = client, headers = {}) => {
    const { response, data } = await by.post("/retrieval", { body, headers }).withResponse()
    if (!("x-dry-run" in headers))
      expect(response.headers.get("server-timing")).toMatch(/\bsearch;dur=/)
    return { cost: response.headers.get("x-cost-idr"), data }
  }
  expect((await costOf({ query: "a harbour" })).cost).toBe("0.003")
  expect((await costOf({ query: "a harbour", rerank: true })).cost).toBe("2.503")
  expect((await costOf({ query: "a harbour" }, sandbox)).cost).toBe("0")
  const dry = await costOf({ query: "a harbour", rerank: true }, client, { "x-dry-run": "1" })
  expect(dry).toMatchObject({ cost: "0", data: { object: "dry_run", cost_idr: 2.503 } })
})

it("a file vanishes from all searches at once when it is deleted", async () => {
  const id = await upload(client, "A lighthouse stands at Bira.", "bira.txt")
  const query = { query: "lighthouse Bira", hybrid: true, top_k: 50 }
  const found = async () => (await ask(query)).results.map(({ file_id }) => file_id)
  expect(await found()).toContain(id)
  await client.files.delete(id)
  expect(await found()).not.toContain(id)
  expect(await errorOf(ask({ ...query, file_ids: [id] }))).toMatchObject({ status: 404 })
})

it.each<[object, string, number]>([
  [{ query: "" }, "query", 400],
  [{ query: "x".repeat(10_001) }, "query", 400],
  [{ query: "a", file_ids: [] }, "file_ids", 400],
  [{ query: "a", top_k: 51 }, "top_k", 400],
  [{ query: "a", rerank: "svc-lyt" }, "rerank", 400],
  [{ query: "a", filters: { pages: { from: 2, to: 1 } } }, "filters.pages", 400],
  [{ query: "a", file_ids: ["file-nowhere"] }, "file_ids[0]", 404],
])("refuses %j naming %s", async (body, param, status) => {
  expect(await errorOf(ask(body))).toMatchObject({ status, param })
})
