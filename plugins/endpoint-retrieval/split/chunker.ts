import type { Chunk } from "../extract/kind.ts"
import { isVisible } from "../extract/visible-text.ts"
import { countCharacters, lastCharacters } from "./code-points.ts"
import { makeSplitText, type SplitText } from "./recursive-splitter.ts"

export interface ChunkSizes {
  /** The most characters of a chunk. */
  readonly characters: number
  /** The most characters that a chunk repeats of the one before; at most half of `characters`. */
  readonly overlap: number
}

const windowOf = (sizes: ChunkSizes) => Math.max(32_768, 8 * sizes.characters)
const sentenceEnd = /[.?!]["')\]]*\s+|[。！？।…؟۔]\s*|\n\s*/
const wordEnd = /\s+/

/** From a sentence's begin where that leaves half of it, else from a word's. */
const overlapFrom = (before: string): string => {
  for (const [end, least] of [
    [sentenceEnd, before.length / 2],
    [wordEnd, 1],
  ] as const) {
    const match = end.exec(before)
    const rest = match === null ? "" : before.slice(match.index + match[0].length)
    if (rest.length >= least) return rest
  }
  return before
}

const spaceAt = (text: string, from: number): number => /\S|$/.exec(text.slice(from))!.index

/**
 * Divides a text that arrives in parts, in memory that does not depend on its length, and the same
 * whatever the parts are. Each chunk is exactly the text between its `start` and `end`, and each
 * character that can be seen is in a chunk.
 */
export class Chunker {
  readonly #sizes: ChunkSizes
  readonly #splitText: SplitText
  readonly #window: number
  /** What is not divided yet. */
  #text = ""
  /** Characters of the text before `#text`. */
  #position = 0
  /** The last characters before `#text`, on the same page. */
  #before = ""
  #isPageStart = true
  #page: number | undefined
  #index = 0

  constructor(sizes: ChunkSizes) {
    this.#sizes = sizes
    this.#splitText = makeSplitText(sizes.characters - sizes.overlap)
    this.#window = windowOf(sizes)
  }

  /** Characters (code points) divided so far. */
  get characters(): number {
    return this.#position
  }

  async *push(text: string, page?: number): AsyncGenerator<Chunk> {
    if (page !== this.#page) yield* this.end()
    this.#page = page
    for (let from = 0; from < text.length; ) {
      const end = from + this.#window - this.#text.length
      this.#text += text.slice(from, end)
      from = Math.min(end, text.length)
      if (this.#text.length >= this.#window) yield* this.#divide(false)
    }
  }

  /** Counts a page of which nothing shall be found. */
  async *pass(text: string, page?: number): AsyncGenerator<Chunk> {
    yield* this.end()
    this.#page = page
    this.#position += countCharacters(text)
  }

  /** The rest of the page or of the text. */
  async *end(): AsyncGenerator<Chunk> {
    yield* this.#divide(true)
    this.#before = ""
    this.#isPageStart = true
  }

  async *#divide(isEnd: boolean): AsyncGenerator<Chunk> {
    const all = this.#text
    const isShort = isEnd && this.#isPageStart && countCharacters(all) <= this.#sizes.characters
    const pieces = isShort ? [all.trim()].filter(Boolean) : await this.#splitText(all)
    this.#isPageStart = false
    let from = 0
    for (const [index, piece] of pieces.entries()) {
      const at = from + spaceAt(all, from)
      if (!all.startsWith(piece, at)) throw new Error("a piece is not where its text is")
      this.#skip(all.slice(from, at))
      from = at
      // the last piece may go on; what is kept for it is less than a window, so that the next part fits
      const isLast = index === pieces.length - 1
      if (!isEnd && isLast && all.length - at < this.#window / 2) break
      if (isVisible(piece)) yield this.#chunkOf(piece)
      else this.#skip(piece)
      from = at + piece.length
    }
    const isDone = isEnd || pieces.length === 0
    if (isDone) this.#skip(all.slice(from))
    this.#text = isDone ? "" : all.slice(from)
  }

  #chunkOf(piece: string): Chunk {
    const overlap = overlapFrom(this.#before).trimStart()
    const start = this.#position - countCharacters(overlap)
    this.#skip(piece)
    return {
      index: this.#index++,
      text: overlap + piece,
      ...(this.#page !== undefined && { page: this.#page }),
      start,
      end: this.#position,
    }
  }

  #skip(text: string): void {
    this.#position += countCharacters(text)
    this.#before = lastCharacters(this.#before + text, this.#sizes.overlap)
  }
}
