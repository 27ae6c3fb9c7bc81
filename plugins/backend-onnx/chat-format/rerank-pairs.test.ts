import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { afterAll, describe, expect, test } from "vitest"
import { encoderFolder } from "../testing/fixtures.ts"
import { tokenizerIn } from "./embed-texts-job.ts"
import { rerankPairs } from "./rerank-pairs.ts"
import rerankPairsJob from "./rerank-pairs-job.ts"

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

test("a blank part of a document is followed by the next one", async () => {
  const part = { text: " \n ", maxTokens: 9, maxWindows: 9, maxSequences: 9 }
  const parts = [
    { ...part, goesOn: true },
    { ...part, goesOn: false },
  ]
  const wanted = { query: "sea", queryTokens: 9, windowTokens: 16, parts }
  expect(await rerankPairs(tokenizer, wanted)).toEqual({
    parts: [{ windows: [], next: { characters: 3, tokens: 0 } }, { windows: [] }],
  })
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

describe("the token type of a pair's second text", () => {
  const root = mkdtempSync(join(tmpdir(), "rakit-pairs-"))
  afterAll(() => rmSync(root, { recursive: true, force: true }))

  /** Tokens of a pair, and how many of them are before the second type. */
  const typesOf = async (from: string, changed: Readonly<Record<string, unknown>> = {}) => {
    const path = mkdtempSync(join(root, "model-"))
    cpSync(encoderFolder(from), path, { recursive: true })
    const file = join(path, "tokenizer_config.json")
    const { model_input_names: _, ...config } = JSON.parse(readFileSync(file, "utf8")) as Record<
      string,
      unknown
    >
    writeFileSync(file, JSON.stringify({ ...config, ...changed }))
    const part = { text: "river", goesOn: false, maxTokens: 9, maxWindows: 9, maxSequences: 9 }
    const request = { folder: path, query: "sea", queryTokens: 9, windowTokens: 40, parts: [part] }
    const read = await rerankPairsJob(request)
    if (!("parts" in read)) throw new Error("refused")
    const { ids, secondFrom } = read.parts[0]!.windows[0]![0]!
    return { tokens: ids.length, first: secondFrom }
  }
  const typed = ["input_ids", "token_type_ids", "attention_mask"]
  const untyped = ["input_ids", "attention_mask"]

  /** Behind [CLS], the query's token, and [SEP]. */
  const secondAt = 3

  test.each([
    ["is 1 by BERT's template", "bert-classifier", {}, true],
    ["is 1 where the names have it", "bert-classifier", { model_input_names: typed }, true],
    [
      "is 0 where the names do not have it",
      "bert-classifier",
      { model_input_names: untyped, tokenizer_class: "BertTokenizer" },
      false,
    ],
    [
      "is 0 for a class without types",
      "bert-classifier",
      { tokenizer_class: "DistilBertTokenizerFast" },
      false,
    ],
    ["is 0 by XLM-R's template", "xlm-roberta-classifier", {}, false],
    [
      "is 0 by XLM-R's template, also with names",
      "xlm-roberta-classifier",
      { model_input_names: typed },
      false,
    ],
    ["is 0 by RoBERTa's post-processor", "roberta", { model_input_names: typed }, false],
  ] as const)("%s", async (_, from, changed, isTyped) => {
    const { tokens, first } = await typesOf(from, changed)
    expect(first).toBe(isTyped ? secondAt : tokens)
  })
})
