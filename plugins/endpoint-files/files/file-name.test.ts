import { Effect } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { outcome } from "../testing/fixture.ts"
import { attachment, mediaTypeOf } from "./download.ts"
import { fromForm, readFileName } from "./file-name.ts"

const read = (name: string) => Effect.runSync(Effect.result(readFileName(name, "file")))
const nameOf = (given: string) => {
  const result = read(given)
  return result._tag === "Success" ? result.success : undefined
}

describe("a file's name", () => {
  it("is its base name", () => {
    for (const [given, name] of [
      ["a.jsonl", "a.jsonl"],
      ["/etc/passwd", "passwd"],
      ["..\\..\\boot.ini", "boot.ini"],
      ["C:\\x\\y/z.md", "z.md"],
      [" a b ", "a b"],
      ["日本語 🙂.md", "日本語 🙂.md"],
      ["👨‍👩‍👧.txt", "👨‍👩‍👧.txt"],
      ["x".repeat(255), "x".repeat(255)],
      ["🙂".repeat(255), "🙂".repeat(255)],
    ] as const)
      expect(nameOf(given)).toBe(name)
  })

  it("that can't be one is 400", async () => {
    for (const name of [
      "",
      " ",
      ".",
      "..",
      "a/",
      "a/..",
      "a\nb",
      "a\r",
      "\u0000",
      "a\u007f",
      "a\u2028b",
      "a\ud800",
      "exe.\u202egpj",
      "a\u200bb.md",
      "\u2067a.md",
      "\ufeffa.md",
      "\u200d",
      "x".repeat(256),
      "🙂".repeat(256),
    ])
      expect([name, await outcome(readFileName(name, "file"))]).toEqual([
        name,
        "invalid_request_error",
      ])
  })

  it("of a form is unpacked as browsers pack it", () => {
    expect(fromForm("a%22b%0D%0Ac%41%.txt")).toBe('a"b\r\nc%41%.txt')
  })
})

/** A parser of RFC 8187 and RFC 6266, written for the test. */
const unpack = (header: string) =>
  /^attachment; filename="([A-Za-z0-9 ._-]*)"; filename\*=UTF-8''((?:[A-Za-z0-9#$&+.^_`|~-]|%[0-9A-F]{2})*)$/.exec(
    header,
  )

describe("Content-Disposition", () => {
  it("gives back any name that we accept, and is one header of harmless characters", () => {
    const names = fc.oneof(
      fc.string({ unit: "binary", maxLength: 60 }),
      fc.string({ unit: fc.constantFrom(..."ab.\"\\/;%*'()!\r\n\t é日\u0000\ud800\u202e") }),
    )
    let accepted = 0
    fc.assert(
      fc.property(names, (given) => {
        const name = nameOf(given)
        if (name === undefined) return
        accepted += 1
        const parts = unpack(attachment(name))
        expect([/[/\\\p{Cc}]/u.test(name), decodeURIComponent(parts?.[2] ?? "")]).toEqual([
          false,
          name,
        ])
      }),
      { numRuns: 1000 },
    )
    expect(accepted).toBeGreaterThan(100)
  })
})

it("a media type is that of the purpose, and for knowledge of the name; never HTML", () => {
  expect(mediaTypeOf("batch_output", "x.html")).toBe("application/jsonl")
  expect(mediaTypeOf("knowledge", "x.PDF")).toBe("application/pdf")
  expect(mediaTypeOf("knowledge", "x.md")).toBe("text/markdown; charset=utf-8")
  expect(mediaTypeOf("knowledge", "x.constructor")).toBe("application/octet-stream")
})
