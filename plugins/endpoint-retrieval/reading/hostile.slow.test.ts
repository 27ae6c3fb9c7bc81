import { deflateSync } from "node:zlib"
import { Effect, Exit, Scope, Stream } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { fakeLog } from "../../../testing/index.ts"
import { makePdf } from "../testing/make-pdf.ts"
import { makeDocumentReader } from "./document-reader.ts"

const limits = { chunkCharacters: 1000, chunkOverlap: 200, maxChunks: 1000, maxPages: 50 }

/** Content that unpacks to many times its size. */
const bomb = (megabytes: number) => ({
  content: "",
  damage: () => deflateSync(Buffer.alloc(megabytes * 2 ** 20, "(a) Tj ")),
})

describe("a hostile file", { timeout: 60_000 }, () => {
  const scopes: Scope.Closeable[] = []
  afterEach(async () => {
    for (const scope of scopes.splice(0)) await Effect.runPromise(Scope.close(scope, Exit.void))
  })
  const open = async (memoryMb: number, limitMs: number) => {
    const scope = Scope.makeUnsafe()
    scopes.push(scope)
    const made = makeDocumentReader({ log: fakeLog(), processes: 1, memoryMb, limitMs, limits })
    const reader = await Effect.runPromise(Scope.provide(made, scope))
    return (bytes: Uint8Array) =>
      Effect.runPromise(Effect.flip(Stream.runDrain(reader.read("pdf", Stream.succeed(bytes)))))
  }

  it("ends its process when that has too much memory, not the server", async () => {
    const fail = await open(300, 60_000)
    expect(await fail(makePdf([bomb(600)]))).toMatchObject({
      code: "too_large",
      message: "Reading the file needs more than 300 MB of memory.",
    })
  })

  it("ends its process when that has worked for too long, and the next file has another", async () => {
    // loading the PDF library as source takes two seconds of a slow processor
    const fail = await open(2000, 8_000)
    expect(await fail(makePdf([bomb(240)]))).toMatchObject({
      code: "too_slow",
      message: "Reading the file takes more than 8 seconds.",
    })
    expect(await fail(Buffer.from("%PDF-1.7"))).toMatchObject({ code: "broken" })
  })
})
