import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { formatTable, wrapped } from "./table.ts"

describe("a table", () => {
  it("pads columns to their widest cell", () => {
    expect(
      formatTable([
        ["a", "bb", "c"],
        ["aaa", "b", ""],
      ]),
    ).toBe("a    bb  c\naaa  b\n")
  })

  it("of a width breaks the widest cells between words", () => {
    expect(formatTable([["name", "what it is for in a few words"]], 20)).toBe(
      "name  what it is for\n      in a few words\n",
    )
  })

  it("breaks no short word, and takes from other columns instead", () => {
    expect(formatTable([["svc-embedding", "two words or more"]], 24)).toBe(
      "svc-embedding  two words\n               or more\n",
    )
  })

  it("never has a longer line, and loses no character", () => {
    const word = fc.stringMatching(/^[a-z:/.]{1,40}$/)
    const cell = fc.array(word, { minLength: 1, maxLength: 12 }).map((words) => words.join(" "))
    const rows = fc.array(fc.tuple(cell, cell, cell), { minLength: 1, maxLength: 5 })
    const letters = (text: string) => [...text.replace(/\s/g, "")].sort().join("")
    fc.assert(
      fc.property(rows, fc.integer({ min: 80, max: 120 }), (given, width) => {
        const text = formatTable(given, width)
        expect(Math.max(...text.split("\n").map(({ length }) => length))).toBeLessThanOrEqual(width)
        expect(letters(text)).toBe(letters(given.flat().join("")))
      }),
    )
  })
})

it("a word that is too long is broken behind a separator, else where the line ends", () => {
  expect(wrapped("see /v1/webhooks/{id}", 14)).toEqual(["see", "/v1/webhooks/", "{id}"])
  expect(wrapped("abcdefgh", 3)).toEqual(["abc", "def", "gh"])
})
