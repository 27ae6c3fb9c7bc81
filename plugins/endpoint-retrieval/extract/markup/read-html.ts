import { Parser } from "htmlparser2"
import { decodeText } from "../decode-text.ts"
import type { Bytes, Part } from "../extract-parts.ts"
import { RunningText } from "./running-text.ts"

const names = (list: string) => new Set(list.split(" "))
const unread = names(
  "script style noscript template svg iframe object canvas audio video select datalist",
)
const paragraphs = names(
  "address article aside blockquote body details dialog dl fieldset figure footer form h1 h2 h3 h4 h5 h6 header hr main nav ol p pre section table title ul",
)
const lines = names("br dd div dt figcaption legend li summary caption tr")
const cells = names("td th")

/** What is shown of a page, while its source is parsed. */
class PageHandler {
  readonly text = new RunningText()
  /** Open elements, from the first one on that is not shown. */
  #hidden = 0
  #preformatted = 0
  #cellsOfRow: number[] = []

  onopentag(name: string, attributes: Readonly<Record<string, string>>): void {
    if (this.#hidden > 0 || unread.has(name) || "hidden" in attributes) this.#hidden++
    else this.#open(name)
  }

  onclosetag(name: string): void {
    if (this.#hidden > 0) this.#hidden--
    else this.#close(name)
  }

  ontext(text: string): void {
    if (this.#hidden > 0) return
    if (this.#preformatted > 0) this.text.addAsItIs(text)
    else this.text.add(text)
  }

  #open(name: string): void {
    this.#breakAround(name)
    if (name === "pre") this.#preformatted++
    if (name === "tr") this.#cellsOfRow.push(0)
    const last = this.#cellsOfRow.length - 1
    if (cells.has(name) && last >= 0 && this.#cellsOfRow[last]!++ > 0) this.text.divide()
  }

  #close(name: string): void {
    this.#breakAround(name)
    if (name === "pre") this.#preformatted--
    if (name === "tr") this.#cellsOfRow.pop()
  }

  #breakAround(name: string): void {
    const inRow = this.#cellsOfRow.length > 0 && !cells.has(name) && name !== "tr"
    if (inRow && (paragraphs.has(name) || lines.has(name))) this.text.add(" ")
    else if (paragraphs.has(name)) this.text.breakLine(2)
    else if (lines.has(name)) this.text.breakLine(1)
  }
}

/** Where a page says its encoding, it does so in its first bytes. */
const headBytes = 1024
const charset = /<meta[^>]+charset\s*=\s*["']?\s*([\w.:-]+)/i

const encodingIn = (head: string): string | undefined => {
  const named = charset.exec(head)?.[1]
  // a page that could be read as far as here is not in UTF-16, whatever it says
  return named === undefined || /^utf-?16/i.test(named) ? undefined : named
}

/** The bytes again, and the first of them as text. */
const withHead = async (bytes: Bytes): Promise<readonly [string, Bytes]> => {
  const iterator = bytes[Symbol.asyncIterator]()
  const first: Uint8Array[] = []
  let size = 0
  while (size < headBytes) {
    const { done, value } = await iterator.next()
    if (done) break
    first.push(value)
    size += value.byteLength
  }
  async function* all() {
    yield* first
    yield* { [Symbol.asyncIterator]: () => iterator }
  }
  return [Buffer.concat(first).subarray(0, headBytes).toString("latin1"), all()]
}

/** The text that a browser shows of a page, and its title. */
export async function* readHtml(bytes: Bytes): AsyncGenerator<Part> {
  const [head, all] = await withHead(bytes)
  const encoding = encodingIn(head)
  const handler = new PageHandler()
  const parser = new Parser(handler)
  for await (const text of decodeText(all, encoding === undefined ? {} : { encoding })) {
    parser.write(text)
    yield { text: handler.text.take() }
  }
  parser.end()
  yield { text: handler.text.take() }
}
