import { type Bytes, extractParts } from "../extract/extract-parts.ts"
import type { Chunk, Kind, ReadBatch } from "../extract/kind.ts"
import { ReadFailure } from "../extract/read-failure.ts"
import { Chunker } from "../split/chunker.ts"
import type { ReadLimits } from "./protocol.ts"

const chunksOfBatch = 64
/** Pages without text are progress, too. */
const pagesOfBatch = 16

const nothingFound = (pages: number | undefined, isEmpty: boolean): ReadFailure => {
  if (pages === undefined || pages === 0)
    return new ReadFailure("empty", isEmpty ? "The file is empty." : "The file holds no text.")
  const what =
    pages === 1
      ? "Its page is blank, or a picture as when paper was scanned"
      : `Its ${pages.toLocaleString("en")} pages are blank, or pictures as when paper was scanned`
  return new ReadFailure(
    "no_text",
    `The file holds no text. ${what}: recognize the text of pictures (OCR), then upload it again.`,
  )
}

const tooMany = (what: string, limit: number): ReadFailure =>
  new ReadFailure("too_large", `The file has more than ${limit.toLocaleString("en")} ${what}.`)

/** The chunks of a file, the last batch with all counts. Fails with a `ReadFailure`. */
export async function* readBatches(
  kind: Kind,
  bytes: Bytes,
  limits: ReadLimits,
): AsyncGenerator<ReadBatch> {
  const chunker = new Chunker({ characters: limits.chunkCharacters, overlap: limits.chunkOverlap })
  let chunks: Chunk[] = []
  let pages: number | undefined
  let pagesSent = 0
  let total = 0
  let isEmpty = true
  async function* noticed(): Bytes {
    for await (const some of bytes) {
      isEmpty &&= some.byteLength === 0
      yield some
    }
  }
  const batch = (): ReadBatch => {
    const taken = chunks
    chunks = []
    pagesSent = pages ?? 0
    return { chunks: taken, characters: chunker.characters, ...(pages !== undefined && { pages }) }
  }
  async function* take(some: AsyncIterable<Chunk>): AsyncGenerator<ReadBatch> {
    for await (const chunk of some) {
      if (++total > limits.maxChunks) throw tooMany("pieces of text", limits.maxChunks)
      chunks.push(chunk)
      if (chunks.length >= chunksOfBatch) yield batch()
    }
  }
  const maxCharacters = limits.maxChunks * limits.chunkCharacters
  for await (const { text, page, isBlank } of extractParts(kind, noticed(), limits)) {
    pages = page
    if (isBlank) yield* take(chunker.pass(text, page))
    else yield* take(chunker.push(text, page))
    if (chunker.characters > maxCharacters) throw tooMany("characters", maxCharacters)
    if ((pages ?? 0) - pagesSent >= pagesOfBatch) yield batch()
  }
  yield* take(chunker.end())
  if (total === 0) throw nothingFound(pages, isEmpty)
  yield batch()
}
