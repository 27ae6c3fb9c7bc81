import { posix } from "node:path"
import { Parser } from "htmlparser2"
import { decodeText } from "../decode-text.ts"
import type { Bytes, Part } from "../extract-parts.ts"
import { ReadFailure } from "../read-failure.ts"
import { wholeOf } from "../whole-of.ts"
import { RunningText } from "./running-text.ts"
import { openZip, type ZipArchive } from "./zip-archive.ts"

/** What was deleted or moved away while changes were tracked, and what older programs show. */
const unread = new Set(["del", "moveFrom", "Fallback", "instrText", "delText"])

const localName = (name: string): string => name.slice(name.indexOf(":") + 1)

/** WordprocessingML (ISO/IEC 29500-1, 17): the text of `t` in runs, paragraphs and tables. */
class DocumentHandler {
  readonly text = new RunningText()
  #unread = 0
  #isText = false
  #tables = 0
  #cells = 0

  onopentag(tag: string): void {
    const name = localName(tag)
    if (this.#unread > 0 || unread.has(name)) this.#unread++
    else this.#open(name)
  }

  onclosetag(tag: string): void {
    if (this.#unread > 0) this.#unread--
    else this.#close(localName(tag))
  }

  ontext(text: string): void {
    if (this.#isText && this.#unread === 0) this.text.add(text)
  }

  #open(name: string): void {
    if (name === "t") this.#isText = true
    else if (name === "tab" || name === "ptab") this.text.add(" ")
    else if (name === "br" || name === "cr") this.#breakLine(1)
    else if (name === "noBreakHyphen") this.text.add("-")
    else if (name === "tbl") this.#tables++
    else if (name === "tr") this.#startRow()
    else if (name === "tc" && this.#cells++ > 0) this.text.divide()
  }

  #close(name: string): void {
    if (name === "t") this.#isText = false
    else if (name === "p") this.#breakLine(2)
    else if (name === "tbl") {
      this.#tables--
      this.text.breakLine(2)
    }
  }

  #startRow(): void {
    this.#cells = 0
    this.text.breakLine(1)
  }

  #breakLine(lines: 1 | 2): void {
    if (this.#tables > 0) this.text.add(" ")
    else this.text.breakLine(lines)
  }
}

async function* textOf(bytes: Bytes): AsyncGenerator<Part> {
  const handler = new DocumentHandler()
  const parser = new Parser(handler, { xmlMode: true })
  for await (const text of decodeText(bytes)) {
    parser.write(text)
    yield { text: handler.text.take() }
  }
  parser.end()
  yield { text: `${handler.text.take()}\n\n` }
}

const relations = "_rels/.rels"
const maxRelationBytes = 2 ** 20

/** The main document is the one that the package's relations name; its folder is of its choice. */
const mainPart = async (zip: ZipArchive): Promise<string> => {
  const source = (await zip.readSmall(relations, maxRelationBytes))?.toString() ?? ""
  let found = "word/document.xml"
  const parser = new Parser(
    {
      onopentag: (_, { Type = "", Target = "" }) => {
        if (Type.endsWith("/officeDocument")) found = posix.join("/", Target).slice(1)
      },
    },
    { xmlMode: true },
  )
  parser.end(source)
  return found
}

const compoundFile = "d0cf11e0"

/** The text of a Word document, its footnotes and its endnotes. */
export async function* readDocx(bytes: Bytes): AsyncGenerator<Part> {
  const data = Buffer.from((await wholeOf(bytes)).buffer)
  if (data.length === 0) throw new ReadFailure("empty", "The file is empty.")
  if (data.subarray(0, 4).toString("hex") === compoundFile)
    throw new ReadFailure(
      "encrypted",
      "The document is protected by a password, or of Word's old format. Save it as .docx without a password, then upload it again.",
    )
  const zip = await openZip(data)
  const main = await mainPart(zip)
  const document = zip.read(main)
  if (document === undefined)
    throw new ReadFailure("broken", "The file is no Word document: it has no text part.")
  yield* textOf(document)
  for (const notes of ["footnotes.xml", "endnotes.xml"]) {
    const part = zip.read(posix.join(posix.dirname(main), notes))
    if (part) yield* textOf(part)
  }
}
