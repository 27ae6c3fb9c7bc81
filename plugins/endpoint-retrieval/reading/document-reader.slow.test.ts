import { Effect, Exit, Fiber, Scope, Stream } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { PortError } from "../../../core/index.ts"
import { fakeLog } from "../../../testing/index.ts"
import type { Kind, ReadBatch } from "../extract/kind.ts"
import { linesOf, makePdf } from "../testing/make-pdf.ts"
import { makeZip } from "../testing/make-zip.ts"
import { type DocumentReader, makeDocumentReader } from "./document-reader.ts"

const limits = { chunkCharacters: 1000, chunkOverlap: 200, maxChunks: 1000, maxPages: 50 }

describe("a document reader", { timeout: 60_000 }, () => {
  const scope = Scope.makeUnsafe()
  let reader: DocumentReader
  beforeAll(async () => {
    const options = { log: fakeLog(), processes: 1, memoryMb: 512, limitMs: 20_000, limits }
    reader = await Effect.runPromise(Scope.provide(makeDocumentReader(options), scope))
  })
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

  const bytesOf = (...parts: readonly (string | Uint8Array)[]) =>
    Stream.fromIterable(parts.map((part) => Buffer.from(part as string)))
  const read = async (kind: Kind, bytes: Stream.Stream<Uint8Array, PortError>) =>
    (await Effect.runPromise(Stream.runCollect(reader.read(kind, bytes)))) as readonly ReadBatch[]
  const failure = (kind: Kind, bytes: Stream.Stream<Uint8Array, PortError>) =>
    Effect.runPromise(Effect.flip(Stream.runDrain(reader.read(kind, bytes))))

  it("reads a text in parts that cut characters, with the counts at the end", async () => {
    const text = `\ufeff# Gr\u00fc\u00dfe 😀\r\n\r\n${"A line.\r\n".repeat(30_000)}`
    const bytes = Buffer.from(text)
    const parts = [bytes.subarray(0, 8), bytes.subarray(8, 14), bytes.subarray(14)]
    const batches = await read("md", bytesOf(...parts))
    const chunks = batches.flatMap((batch) => batch.chunks)
    const all = [...text]
    for (const [n, { index, text, start, end, page }] of chunks.entries()) {
      expect(all.slice(start, end).join("")).toBe(text)
      expect([index, page]).toEqual([n, undefined])
    }
    expect(batches.length).toBeGreaterThan(3)
    expect(batches.at(-1)).toMatchObject({ characters: all.length })
  })

  it("reads every kind", async () => {
    const docx = makeZip({
      "word/document.xml": "<w:document><w:p><w:t>Some words.</w:t></w:p></w:document>",
    })
    const files: readonly (readonly [Kind, string | Uint8Array, string])[] = [
      ["pdf", makePdf([{ content: linesOf("Some words.") }]), "[Page 1]\nSome words."],
      ["docx", docx, "Some words."],
      ["html", "<p>Some <b>words</b>.", "Some words."],
      ["csv", "some,words\n1,2\n", "some | words\nsome: 1 | words: 2"],
    ]
    for (const [kind, file, text] of files) {
      const [batch] = await read(kind, bytesOf(file))
      expect(batch?.chunks).toMatchObject([{ index: 0, text, start: 0, end: text.length }])
      expect(batch?.pages).toBe(kind === "pdf" ? 1 : undefined)
    }
  })

  it("says what is wrong with a file", async () => {
    expect(await failure("txt", bytesOf("a", Buffer.from([0xff, 0xfe])))).toMatchObject({
      code: "broken",
      message: "The file is not a text in UTF-8. Save it as UTF-8, then upload it again.",
    })
    expect(await failure("txt", bytesOf("word ".repeat(400_000)))).toMatchObject({
      code: "too_large",
    })
  })

  it("goes on with the next file when one was left, or when its bytes failed", async () => {
    const many = Stream.map(Stream.range(1, 1_000_000), (n) => Buffer.from(`Line ${n}.\n`))
    const first = await Effect.runPromise(Stream.runHead(reader.read("txt", many)))
    expect(first).toMatchObject({ _tag: "Some" })
    const lost = new PortError({ port: "storage", message: "gone" })
    const cut = Stream.concat(bytesOf("a text"), Stream.fail(lost))
    expect(await failure("txt", cut)).toBe(lost)
    const stuck = Effect.runFork(Stream.runDrain(reader.read("txt", Stream.never)))
    await Effect.runPromise(Fiber.interrupt(stuck))
    expect((await read("txt", bytesOf("a text")))[0]?.chunks[0]?.text).toBe("a text")
  })
})
