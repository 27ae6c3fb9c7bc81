import { Effect } from "effect"
import fc from "fast-check"
import { expect, test } from "vitest"
import { runs } from "../../../testing/property.ts"
import type { DocumentPart } from "../chat-format/document-windows.ts"
import { windowsOf } from "../chat-format/document-windows.ts"
import { DocumentScores } from "./document-scores.ts"
import { type ReadJob, readDocuments } from "./read-documents.ts"

test("windows overlap, hold all tokens in order, and leave an incomplete one to the next part", () => {
  fc.assert(
    fc.property(fc.nat(700), fc.integer({ min: 1, max: 600 }), (tokens, capacity) => {
      const { windows, next } = windowsOf(tokens, capacity)
      expect(next).toBeUndefined()
      expect(windows.at(0)?.from ?? 0).toBe(0)
      expect(windows.at(-1)?.to ?? 0).toBe(tokens)
      for (const [i, { from, to }] of windows.entries()) {
        expect(to - from).toBeLessThanOrEqual(capacity)
        const { to: before = from } = windows[i - 1] ?? {}
        expect(from).toBeLessThanOrEqual(before)
        if (i > 0 && capacity >= 4) expect(from).toBeLessThan(before)
      }
      const part = windowsOf(tokens, capacity, { goesOn: true })
      const left = windows.length > 1 ? windows.slice(0, -1) : windows
      expect(part.windows).toEqual(left)
      expect(part.next! > 0 || tokens === 0).toBe(true)
      expect(windowsOf(tokens, capacity, { most: 2 })).toEqual({ windows: windows.slice(0, 2) })
    }),
  )
})

/** A token is a character; a window has 100 of them. */
const letters =
  (seen: DocumentPart[] = [], sequences = 1): ReadJob<string> =>
  (parts) =>
    Effect.sync(() => ({
      parts: parts.map((part) => {
        seen.push(part)
        const { text, goesOn, maxTokens, maxWindows, maxSequences } = part
        const isCut = text.length >= maxTokens
        const { windows, next } = windowsOf(Math.min(text.length, maxTokens), 100, {
          goesOn: goesOn && !isCut,
          most: Math.min(maxWindows, Math.max(1, Math.floor(maxSequences / sequences))),
        })
        return {
          windows: windows.map(({ from, to }) =>
            Array.from({ length: sequences }, () => text.slice(from, to)),
          ),
          ...(next !== undefined && { next: { characters: next, tokens: next } }),
        }
      }),
    }))

const read = async (
  documents: readonly string[],
  more: { readonly maxDocumentTokens?: number; readonly maxDocumentWindows?: number } = {},
  job = letters(),
) => {
  const result = await Effect.runPromise(
    readDocuments({ query: "q", documents, ...more }, 100, job),
  )
  if (!("windows" in result)) throw new Error("refused")
  return documents.map((_, index) =>
    result.windows.filter(({ document }) => document === index).map(({ inputs }) => inputs[0]!),
  )
}
const numbered = (length: number) =>
  Array.from({ length: Math.ceil(length / 6) }, (_, i) => String(i).padStart(6, "0"))
    .join("")
    .slice(0, length)

test("documents of any length are read whole, each as if it were alone", async () => {
  const lengths = fc.array(fc.oneof(fc.nat(300), fc.nat(60_000)), { minLength: 1, maxLength: 5 })
  await fc.assert(
    fc.asyncProperty(lengths, async (all) => {
      const documents = all.map(numbered)
      const seen: DocumentPart[] = []
      const windows = await read(documents, {}, letters(seen))
      for (const { text } of seen) expect(text.length).toBeLessThanOrEqual(16_384)
      for (const [index, document] of documents.entries()) {
        let at = 0
        for (const window of windows[index]!) {
          const found = document.indexOf(window)
          expect(found >= 0 && found <= at).toBe(true)
          at = found + window.length
        }
        expect(at).toBe(document.length)
        expect((await read([document]))[0]).toEqual(windows[index])
      }
    }),
    { numRuns: runs(20) },
  )
})

test("tokens and windows of a document are limited across its parts, and in all", async () => {
  const long = numbered(50_000)
  expect(
    (await read([long, "a"], { maxDocumentWindows: 300 })).map(({ length }) => length),
  ).toEqual([300, 1])
  const [cut] = await read([long], { maxDocumentTokens: 20_000 })
  expect(long.indexOf(cut!.at(-1)!) + cut!.at(-1)!.length).toBe(20_000)
  // 131,072 tokens in sequences of 100
  const [most] = await read([numbered(200_000)])
  expect(most).toHaveLength(1_310)
  const [paired] = await read([numbered(200_000)], {}, letters([], 4))
  expect(paired).toHaveLength(327)
})

test("a document has the best of its windows' scores, a window the mean of its sequences'", () => {
  const window = (document: number, of = 1) => ({ document, inputs: Array(of).fill("") })
  const scores = new DocumentScores([window(2), window(0, 2), window(2), window(0, 2), window(1)])
  const given: readonly [number, number, object | undefined][] = [
    [6, 0.25, { index: 1, score: 0.25 }],
    [0, 0.5, undefined],
    [1, 1, undefined],
    [4, 0.5, undefined],
    [5, 0.625, undefined],
    [3, 0.125, { index: 2, score: 0.5 }],
    [2, 0, { index: 0, score: 0.5625 }],
  ]
  for (const [index, score, event] of given) expect(scores.take(index, score)).toEqual(event)
})
