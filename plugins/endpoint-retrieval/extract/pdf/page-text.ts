import type { TextItem } from "pdfjs-dist/types/src/display/api.js"

/** Lines further apart than this many heights of their letters are of two paragraphs. */
const paragraphGap = 1.9

/** The page's words in the order of its content, with lines and paragraphs as they are shown. */
export class PageText {
  #text = ""
  #height = 0
  /** Where the last line was, along the direction in which lines follow. */
  #lineAt: number | undefined

  get length(): number {
    return this.#text.length
  }

  add({ str, transform, height, hasEOL }: TextItem): void {
    if (str.trim() !== "") this.#startLine(transform as readonly number[], height)
    this.#text += str
    if (hasEOL) this.#text += "\n"
  }

  #startLine([, , c = 0, d = 0, x = 0, y = 0]: readonly number[], height: number): void {
    const size = Math.hypot(c, d) || height || 1
    const at = (c * x + d * y) / size
    const gap = paragraphGap * Math.max(size, this.#height)
    const isNext = this.#lineAt !== undefined && this.#text.endsWith("\n")
    if (isNext && Math.abs(at - this.#lineAt!) > gap) this.#text += "\n"
    this.#lineAt = at
    this.#height = size
  }

  /** Words that were divided at the end of a line are whole again. */
  toString(): string {
    return this.#text
      .replace(/[^\S\n]+\n/g, "\n")
      .replace(/(\p{L})[-\u00ad\u2010]\n(?=\p{Ll})/gu, "$1")
      .replaceAll("\u00ad", "")
      .replace(/\n{3,}/g, "\n\n")
      .trim()
  }
}
