import { Effect } from "effect"
import fc from "fast-check"
import { type Kysely, sql } from "kysely"
import { afterAll, beforeAll, expect, it } from "vitest"
import type { Tenant } from "../../../core/index.ts"
import { openTestDatabase, type TestDatabase } from "../../../testing/postgres.ts"
import { anyOfWords, oneWord, wordsIn, wordsOfChunk } from "./words.ts"

const tenant: Tenant = { account: "acct_1", mode: "live" }

let test: TestDatabase
beforeAll(async () => {
  test = await openTestDatabase()
})
afterAll(() => test.close())

const query = async <Row>(statement: ReturnType<typeof sql<Row>>): Promise<Row> => {
  const { rows } = await Effect.runPromise(
    test.database.run(() => statement.execute(test.database.queries() as Kysely<unknown>)),
  )
  return rows[0]!
}

const matches = async (chunk: string, words: string): Promise<boolean> =>
  (await query(sql<{ found: boolean }>`SELECT ${chunk}::tsvector @@ ${words}::tsquery AS found`))
    .found

it.each([
  ["The “Quick” fox's Café", ["the", "quick", "fox", "s", "café"]],
  ["ＦＵＬＬ ﬁne 2026", ["full", "fine", "2026"]],
  ["हिन्दी में", ["हिन्दी", "में"]],
  ["東京都に", ["東京", "京都", "都に"]],
  ["東 京 PDF版", ["東", "京", "pdf", "版"]],
  ["!? '\\ @", []],
])("divides %s into words of any script", (text, words) => {
  expect(wordsIn(text)).toEqual(words)
})

it("finds a chunk by each of its words, and only for its tenant", async () => {
  const chunk = wordsOfChunk(tenant, "Ibu kota Indonesia ialah Jakarta")
  expect(await matches(chunk, anyOfWords(tenant, ["jakarta", "bandung"]))).toBe(true)
  expect(await matches(chunk, anyOfWords(tenant, ["bandung"]))).toBe(false)
  expect(await matches(chunk, oneWord("kota"))).toBe(true)
  for (const other of [
    { ...tenant, mode: "test" as const },
    { ...tenant, account: "acct_" },
  ])
    expect(await matches(chunk, anyOfWords(other, ["jakarta"]))).toBe(false)
})

it("no text breaks the form, or stands for a tenant", async () => {
  const odd = fc.array(
    fc.constantFrom("'", "\\", "@live:acct_1", " ", "a", ":", "*", "!", "&", "|", "(", "<->", "ß"),
  )
  const text = fc.oneof(
    fc.string({ unit: "binary" }),
    odd.map((parts) => parts.join("")),
  )
  const account = fc.oneof(fc.constantFrom("acct_1", "a b", "'", "\\\\"), fc.uuid())
  await fc.assert(
    fc.asyncProperty(text, account, async (content, name) => {
      const words = wordsIn(content)
      const owner = { account: name, mode: "live" } as const
      const chunk = wordsOfChunk(owner, content)
      expect(await matches(chunk, anyOfWords(owner, ["a", ...words]))).toBe(words.length > 0)
      const other = { ...owner, mode: "test" } as const
      expect(await matches(chunk, anyOfWords(other, ["a", ...words]))).toBe(false)
    }),
    { numRuns: 50 },
  )
})

it("a chunk of the largest size is stored, and longer words are cut", async () => {
  const chunk = wordsOfChunk(tenant, `${"a ".repeat(4_000)}${"b".repeat(9_000)} end`)
  const { words } = await query(sql<{ words: number }>`SELECT length(${chunk}::tsvector) AS words`)
  expect(words).toBe(4)
})
