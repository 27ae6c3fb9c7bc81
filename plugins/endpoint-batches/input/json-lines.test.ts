import { Effect, Stream } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type JsonLinesOptions, jsonLines, type RawLine } from "./json-lines.ts"

const linesOf = (
  chunks: Iterable<Uint8Array>,
  options: Partial<JsonLinesOptions> = {},
): Promise<readonly RawLine[]> =>
  Effect.runPromise(
    Stream.runCollect(jsonLines(Stream.fromIterable(chunks), { maxLineBytes: 1_000, ...options })),
  )

const bytesOf = (text: string) => Buffer.from(text, "utf8")
const read = (text: string, options?: Partial<JsonLinesOptions>) =>
  linesOf([bytesOf(text)], options)
const texts = async (text: string) => (await read(text)).map((line) => line.text)

/** A slow and simple reference: the whole file at once, byte by byte. */
const reference = (bytes: Uint8Array, maxLineBytes: number): readonly RawLine[] => {
  const found: RawLine[] = []
  const ends = [...bytes.keys()].filter((at) => bytes[at] === 10).map((at) => at + 1)
  if (bytes.length > (ends.at(-1) ?? 0)) ends.push(bytes.length)
  for (const [index, end] of ends.entries()) {
    const offset = ends[index - 1] ?? 0
    let content = [...bytes.subarray(offset, bytes[end - 1] === 10 ? end - 1 : end)]
    if (content.at(-1) === 13) content = content.slice(0, -1)
    if (index === 0 && content[0] === 0xef && content[1] === 0xbb && content[2] === 0xbf)
      content = content.slice(3)
    const place = { line: index + 1, offset, end }
    if (content.length > maxLineBytes)
      found.push({ ...place, text: undefined, problem: "too_long" })
    else {
      try {
        const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(
          Uint8Array.from(content),
        )
        if (text.replace(/[ \t\r]/g, "") !== "") found.push({ ...place, text })
      } catch {
        found.push({ ...place, text: undefined, problem: "not_utf8" })
      }
    }
  }
  return found
}

describe("lines", () => {
  it("have a number, and the bytes from which to which they reach", async () => {
    expect(await read('{"a":1}\r\n\n  \t\n{"b":"é"}')).toEqual([
      { line: 1, offset: 0, end: 9, text: '{"a":1}' },
      { line: 4, offset: 14, end: 24, text: '{"b":"é"}' },
    ])
  })

  it.each([
    ["an empty file", "", []],
    ["nothing but line ends", "\n\r\n\n", []],
    ["a byte-order mark alone", "\ufeff", []],
    ["a byte-order mark at the very start", "\ufeffa\n\ufeffb", ["a", "\ufeffb"]],
    ["no line end at the end", "a\nb", ["a", "b"]],
    ["a carriage return inside, and two at the end", "a\rb\r\r\n", ["a\rb\r"]],
    ["a NUL", "a\0b\n", ["a\0b"]],
    ["line ends of Unicode only", "a\u2028b\u0085c", ["a\u2028b\u0085c"]],
  ])("%s", async (_, text, expected) => expect(await texts(text)).toEqual(expected))

  it("that are no UTF-8 are reported, and the others are read", async () => {
    const lone = [
      Buffer.from([0xff]),
      Buffer.from([0xed, 0xa0, 0x80]),
      Buffer.from([0xc0, 0x80]),
      Buffer.from([0xe2, 0x82]),
    ]
    for (const bytes of lone)
      expect(await linesOf([Buffer.concat([bytesOf("a\n"), bytes, bytesOf("\nb")])])).toMatchObject(
        [{ text: "a" }, { line: 2, problem: "not_utf8", text: undefined }, { text: "b" }],
      )
  })

  it("over the maximum are reported with their end, and nothing of them is kept", async () => {
    const long = 64 * 2 ** 20
    function* chunks() {
      yield bytesOf("a\n")
      const chunk = Buffer.alloc(2 ** 16, "x")
      for (let sent = 0; sent < long; sent += chunk.length) yield chunk
      yield bytesOf("\nb\n")
    }
    global.gc?.()
    const before = process.memoryUsage().arrayBuffers
    expect(await linesOf(chunks(), { maxLineBytes: 1_000_000 })).toEqual([
      { line: 1, offset: 0, end: 2, text: "a" },
      { line: 2, offset: 2, end: long + 3, text: undefined, problem: "too_long" },
      { line: 3, offset: long + 3, end: long + 5, text: "b" },
    ])
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(16 * 2 ** 20)
  })

  it("that are blank cost no more than their bytes, however many they are", async () => {
    const length = 2 ** 24
    const begunMs = performance.now()
    expect(
      await linesOf([
        Buffer.alloc(length, "\n"),
        bytesOf("a\n"),
        Buffer.alloc(length, "\r\n"),
        bytesOf("b"),
      ]),
    ).toEqual([
      { line: length + 1, offset: length, end: length + 2, text: "a" },
      { line: 1.5 * length + 2, offset: 2 * length + 2, end: 2 * length + 3, text: "b" },
    ])
    // one by one they take ten times as long
    expect(performance.now() - begunMs).toBeLessThan(4_000)
  })

  it("may be as long as the maximum, not counting line end and byte-order mark", async () => {
    const options = { maxLineBytes: 5 }
    expect(await read("\ufeff12345\r\n12345\r\n12345", options)).toMatchObject([
      { text: "12345" },
      { text: "12345" },
      { text: "12345" },
    ])
    expect(await read("\ufeff123456\r\n123456\n123456", options)).toMatchObject([
      { problem: "too_long" },
      { problem: "too_long" },
      { problem: "too_long" },
    ])
  })
})

/** Text, marks, line ends and bytes that are no text, in any order. */
const pieces = fc.array(
  fc.oneof(
    fc.constantFrom("\n", "\r\n", "\r", "\ufeff", "{}", " ", "\0", "é", "😀").map(bytesOf),
    fc.string({ maxLength: 12 }).map(bytesOf),
    fc.uint8Array({ maxLength: 6 }).map((bytes) => Buffer.from(bytes)),
  ),
  { maxLength: 40 },
)

const split = (bytes: Uint8Array, cuts: readonly number[]): readonly Uint8Array[] => {
  const at = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b)
  return [0, ...at].map((from, index) => bytes.subarray(from, at[index] ?? bytes.length))
}

describe("whatever the bytes and however they are cut", () => {
  it("the lines are those of a plain reading", async () => {
    await fc.assert(
      fc.asyncProperty(
        pieces,
        fc.array(fc.nat(400), { maxLength: 30 }),
        fc.integer({ min: 1, max: 20 }),
        async (parts, cuts, maxLineBytes) => {
          const bytes = Buffer.concat(parts)
          expect(await linesOf(split(bytes, cuts), { maxLineBytes })).toEqual(
            reference(bytes, maxLineBytes),
          )
        },
      ),
      { numRuns: 500 },
    )
  })

  it("a reader goes on behind any line", async () => {
    await fc.assert(
      fc.asyncProperty(
        pieces,
        fc.nat(30),
        fc.array(fc.nat(400), { maxLength: 10 }),
        async (parts, choice, cuts) => {
          const bytes = Buffer.concat(parts)
          const all = reference(bytes, 10)
          const known = all[choice % Math.max(1, all.length)]
          const from = known ? { line: known.line + 1, offset: known.end } : { line: 1, offset: 0 }
          const rest = await linesOf(split(bytes.subarray(from.offset), cuts), {
            maxLineBytes: 10,
            from,
          })
          expect(rest).toEqual(all.filter((line) => line.line >= from.line))
        },
      ),
      { numRuns: 300 },
    )
  })
})
