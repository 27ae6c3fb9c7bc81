import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { webModule } from "./testing/web-module.ts"

const { surroundings } = await webModule("surroundings.js")

interface Part {
  readonly text: string
  readonly isHit: boolean
  readonly page?: number
}
const textOf = (parts: readonly Part[]) => parts.map(({ text }) => text).join("")
const chunkOf = (all: readonly string[], chunk_index: number, start: number, end: number) => ({
  chunk_index,
  start,
  end,
  text: all.slice(start, end).join(""),
})

describe("the text around a hit", () => {
  it("has what overlaps once, and the hit whole", () => {
    const all = Array.from("one two three four five six")
    const hit = {
      ...chunkOf(all, 1, 4, 18),
      neighbours: [chunkOf(all, 0, 0, 8), chunkOf(all, 2, 14, 27)],
    }
    expect(surroundings(hit)).toEqual([
      { text: "one ", isHit: false },
      { text: "two three four", isHit: true },
      { text: " five six", isHit: false },
    ])
  })

  it("has what an earlier chunk with the same begin shares with the hit once", () => {
    const all = Array.from("one two")
    const hit = { ...chunkOf(all, 1, 0, 7), neighbours: [chunkOf(all, 0, 0, 3)] }
    expect(surroundings(hit)).toEqual([{ text: "one two", isHit: true }])
  })

  it("is the document's, whatever its characters and overlaps", () => {
    const characters = fc.string({ unit: "grapheme", minLength: 30, maxLength: 60 })
    fc.assert(
      fc.property(characters, fc.nat(6), fc.nat(4), (text, overlap, at) => {
        const all = Array.from(text)
        const size = Math.ceil(all.length / 5)
        const chunks = Array.from({ length: 5 }, (_, index) =>
          chunkOf(
            all,
            index,
            Math.max(0, index * size - overlap),
            Math.min(all.length, (index + 1) * size),
          ),
        )
        const neighbours = chunks.filter(({ chunk_index: index }) => index !== at)
        const parts: readonly Part[] = surroundings({ ...chunks[at]!, neighbours })
        expect(textOf(parts)).toBe(text)
        expect(textOf(parts.filter(({ isHit }) => isHit))).toBe(chunks[at]!.text)
      }),
    )
  })

  it("has pages, and gaps where white space was", () => {
    const chunks = [
      { chunk_index: 0, start: 0, end: 3, page: 1, text: "one" },
      { chunk_index: 1, start: 4, end: 7, page: 1, text: "two" },
      { chunk_index: 2, start: 10, end: 13, page: 2, text: "six" },
    ]
    const hit = { ...chunks[1], neighbours: [chunks[0], chunks[2]] }
    expect(surroundings(hit)).toEqual([
      { text: "one", isHit: false, page: 1 },
      { text: " ", isHit: false, page: 1 },
      { text: "two", isHit: true, page: 1 },
      { text: "\n\n", isHit: false, page: 1 },
      { text: "six", isHit: false, page: 2 },
    ])
  })

  it("is in pieces where there are no places, and the hit alone without neighbours", () => {
    const [one, two] = [
      { chunk_index: 4, text: "four" },
      { chunk_index: 5, text: "five" },
    ]
    expect(surroundings(two)).toEqual([{ text: "five", isHit: true }])
    expect(textOf(surroundings({ ...two, neighbours: [one] }))).toBe("four\n…\nfive")
    const wrong = { chunk_index: 4, start: 0, end: 9, text: "four" }
    expect(textOf(surroundings({ ...two, neighbours: [wrong] }))).toContain("…")
  })
})
