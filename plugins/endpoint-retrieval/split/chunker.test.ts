import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { Chunk } from "../extract/kind.ts"
import { isVisible } from "../extract/visible-text.ts"
import { Chunker, type ChunkSizes } from "./chunker.ts"

interface Page {
  readonly page?: number
  readonly text: string
}

const chunksOf = async (sizes: ChunkSizes, pages: readonly Page[]): Promise<Chunk[]> => {
  const chunker = new Chunker(sizes)
  const chunks: Chunk[] = []
  for (const { text, page } of pages)
    for await (const chunk of chunker.push(text, page)) chunks.push(chunk)
  for await (const chunk of chunker.end()) chunks.push(chunk)
  return chunks
}

const usual: ChunkSizes = { characters: 1000, overlap: 200 }
const letters = (text: string) => [...text]

const words = fc.constantFrom(
  ..."the quick brown fox. jumps over。 a lazy dog！ \n \n\n \r\n \t  été 日本語の文章です。 😀 👩‍👩‍👧 ก็คือภาษาไทย aaaa aaaa aaaa \f \ufeff क्या।".split(
    " ",
  ),
  " ",
  "",
  "a".repeat(300),
)
const texts = fc
  .array(words, { maxLength: 400 })
  .chain((all) => fc.constantFrom("", " ").map((between) => all.join(between)))
const sizes = fc.oneof(
  fc.record({
    characters: fc.integer({ min: 100, max: 400 }),
    overlap: fc.integer({ min: 0, max: 50 }),
  }),
  // the most that settings allow
  fc.integer({ min: 50, max: 200 }).map((overlap) => ({ characters: 2 * overlap, overlap })),
)

describe("chunks", () => {
  it("are exactly the text between their offsets, and hold all that can be seen", () =>
    fc.assert(
      fc.asyncProperty(texts, sizes, async (text, size) => {
        const all = letters(text)
        const isCovered = all.map((letter) => !isVisible(letter))
        let last: Chunk | undefined
        for (const chunk of await chunksOf(size, [{ text }])) {
          expect(all.slice(chunk.start, chunk.end).join("")).toBe(chunk.text)
          expect(chunk.text).toBe(chunk.text.trim())
          expect(letters(chunk.text).length).toBeLessThanOrEqual(size.characters)
          expect(chunk.index).toBe((last?.index ?? -1) + 1)
          if (last) {
            expect(chunk.end).toBeGreaterThan(last.end)
            expect(last.end - chunk.start).toBeLessThanOrEqual(size.overlap)
          }
          isCovered.fill(true, chunk.start, chunk.end)
          last = chunk
        }
        expect(isCovered).not.toContain(false)
      }),
      { numRuns: 150 },
    ))

  it("are the same whatever parts the text arrives in", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(words, { minLength: 5, maxLength: 30 }),
        fc.array(fc.integer({ min: 1, max: 40_000 }), { minLength: 1, maxLength: 10 }),
        async (some, cuts) => {
          const text = some.join(" ").repeat(300)
          const parts: Page[] = []
          for (let from = 0, n = 0; from < text.length; n++) {
            const end = from + cuts[n % cuts.length]! + text.length / 100
            parts.push({ text: text.slice(from, end) })
            from = Math.floor(end)
          }
          expect(await chunksOf(usual, parts)).toEqual(await chunksOf(usual, [{ text }]))
        },
      ),
      { numRuns: 10 },
    ))

  it.each([20_000, 32_000, 32_700, 32_760, 32_767, 32_768, 65_500])(
    "come behind %i spaces, whatever parts they arrive in",
    async (spaces) => {
      const gap = " ".repeat(spaces)
      for (const text of [
        `${gap}${"word and more text ".repeat(20)}`,
        `one${gap}two ${gap} three`,
      ]) {
        const whole = await chunksOf(usual, [{ text }])
        expect(whole.map((chunk) => text.slice(chunk.start, chunk.end))).toEqual(
          whole.map((chunk) => chunk.text),
        )
        expect(whole.map((chunk) => chunk.text).join(" ")).toMatch(/word|one.*two.*three/s)
        for (const cut of [7, 32_761]) {
          const parts = [{ text: text.slice(0, cut) }, { text: text.slice(cut) }]
          expect(await chunksOf(usual, parts)).toEqual(whole)
        }
      }
    },
  )

  it("never span two pages, and start at their page's first character", async () => {
    const page = (n: number) => ({
      page: n,
      text: `[Page ${n}]\n${`Words of ${n}. `.repeat(n * 20)}\n\n`,
    })
    const pages = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(page)
    const all = pages.map(({ text }) => text).join("")
    const chunks = await chunksOf(usual, pages)
    for (const chunk of chunks) {
      expect(all.slice(chunk.start, chunk.end)).toBe(chunk.text)
      expect(chunk.text).not.toMatch(new RegExp(`Words of (?!${chunk.page}\\b)`))
    }
    for (const { page } of pages)
      expect(chunks.find((chunk) => chunk.page === page)?.text).toMatch(`[Page ${page}]`)
  })

  it("leaves a short text whole", async () => {
    const text = `${"word ".repeat(199)}\n`
    expect(await chunksOf(usual, [{ text }])).toEqual([
      { index: 0, text: text.trim(), start: 0, end: 994 },
    ])
    for (const text of [" \n\n\u00a0", "\u200b\u200d \ufeff\u0301", "\u200b".repeat(5000)])
      expect(await chunksOf(usual, [{ text }])).toEqual([])
  })

  it("end where paragraphs and sentences do, and repeat whole sentences", async () => {
    const sentence = (n: number) => `Sentence number ${n} says what the ${n}th sentence has to say.`
    const text = Array.from({ length: 3000 }, (_, n) => sentence(n)).join(" ")
    for (const { text: chunk } of await chunksOf(usual, [{ text }])) {
      expect(chunk).toMatch(/^Sentence number/)
      expect(chunk).toMatch(/to say\.$/)
    }
    const [first] = await chunksOf(usual, [
      { text: `${"A line of it.\n".repeat(40)}\n${"Another line.\n".repeat(40)}` },
    ])
    expect(first?.text).toBe("A line of it.\n".repeat(40).trim())
  })

  it("cuts a text without any space between words, never within a character", async () => {
    const chunks = await chunksOf(usual, [{ text: "私は猫です".repeat(1000) + "😀".repeat(5000) }])
    for (const { text } of chunks) {
      expect(text).not.toMatch(/\p{Surrogate}/u)
      expect(letters(text).length).toBeLessThanOrEqual(1000)
    }
    expect(chunks.length).toBeLessThan(16)
  })

  it("takes long white space as white space", async () => {
    const gap = " \n".repeat(100_000)
    const chunks = await chunksOf(usual, [{ text: `${gap}one${gap}two${gap}` }])
    expect(chunks).toEqual([
      { index: 0, text: "one", start: 200_000, end: 200_003 },
      { index: 1, text: "two", start: 400_003, end: 400_006 },
    ])
  })
})
