import fc from "fast-check"
import { expect, test } from "vitest"
import { encoderFolder } from "../testing/fixtures.ts"
import { tokenizerIn } from "./embed-texts-job.ts"
import { rerankPairs } from "./rerank-pairs.ts"

const tokenizer = tokenizerIn(encoderFolder("bert-classifier"))
const tokensOf = async (text: string) =>
  (await tokenizer.encode(text, null, { addSpecialTokens: false })).getIds()

const pairsOf = (query: string, text: string, windowTokens: number) =>
  rerankPairs(tokenizer, {
    query,
    queryTokens: 1_000,
    windowTokens,
    parts: [
      { text, goesOn: false, maxTokens: 1_000, maxWindows: 1_000, maxSequences: Number.MAX_VALUE },
    ],
  })

const words = (most: number) =>
  fc.array(fc.constantFrom("sea", "a", "river"), { minLength: 1, maxLength: most })

test("pairs fit into the window, and hold all of query and document", async () => {
  await fc.assert(
    fc.asyncProperty(words(60), words(150), fc.integer({ min: 7, max: 60 }), async (q, d, size) => {
      const [query, text] = [q.join(" "), d.join(" ")]
      const result = await pairsOf(query, text, size)
      if (!("parts" in result)) throw new Error("refused")
      const { windows } = result.parts[0]!
      // [CLS] query [SEP] document [SEP]
      const seen = windows.map((pairs) =>
        pairs.map(({ ids, secondFrom }) => {
          expect(ids.length).toBeLessThanOrEqual(size)
          return { query: ids.slice(1, secondFrom - 1), document: ids.slice(secondFrom, -1) }
        }),
      )
      for (const pairs of seen)
        for (const pair of pairs) expect(pair.document).toEqual(pairs[0]!.document)
      const [wanted, document] = [await tokensOf(query), await tokensOf(text)]
      const isWhole = (parts: readonly Int32Array[], all: readonly number[]) => {
        expect([...parts[0]!]).toEqual(all.slice(0, parts[0]!.length))
        expect([...parts.at(-1)!]).toEqual(all.slice(-parts.at(-1)!.length))
        expect(parts.reduce((sum, { length }) => sum + length, 0)).toBeGreaterThanOrEqual(
          all.length,
        )
      }
      isWhole(
        seen[0]!.map((pair) => pair.query),
        wanted,
      )
      isWhole(
        seen.map(([first]) => first!.document),
        document,
      )
    }),
    { numRuns: 50 },
  )
})

test("a window without room for a pair is refused", async () => {
  for (const size of [1, 3, 6])
    expect(await pairsOf("sea", "river", size)).toHaveProperty("queryTooLong")
})
