import { describe, expect, it } from "vitest"
import { linesOf, makePdf } from "../../testing/make-pdf.ts"
import { partsOf } from "../../testing/read-parts.ts"

const read = (bytes: Uint8Array, maxPages?: number) => partsOf("pdf", bytes, maxPages)
const page = (...lines: readonly string[]) => ({ content: linesOf(...lines) })

describe("a PDF", () => {
  it("gives its pages, with marks, lines, paragraphs and whole words", async () => {
    const pages = await read(
      makePdf([
        page("A first line with a divi-", "ded word.", "", "A paragraph."),
        page(),
        page("End."),
      ]),
    )
    expect(pages).toEqual([
      {
        page: 1,
        text: "[Page 1]\nA first line with a divided word.\n\nA paragraph.\n\n",
        isBlank: false,
      },
      { page: 2, text: "[Page 2]\n\n\n", isBlank: true },
      { page: 3, text: "[Page 3]\nEnd.\n\n", isBlank: false },
    ])
  })

  it("gives what was filled into a form, and typed onto a page, but no comments", async () => {
    const annotation = (subtype: string, rest: string) =>
      `<< /Type /Annot /Subtype /${subtype} /Rect [9 9 99 99] ${rest} >>`
    const annotations = [
      annotation("Widget", "/FT /Tx /T (name) /V (Ann Lee)"),
      annotation("FreeText", "/Contents (Typed.) /DA (/F 12 Tf)"),
      annotation("Text", "/Contents (A comment.)"),
    ]
    expect(await read(makePdf([{ ...page("Name:"), annotations }]))).toMatchObject([
      { text: "[Page 1]\nName:\n\nTyped.\nAnn Lee\n\n" },
    ])
  })

  it("fails at the page that is damaged, after those before it", async () => {
    const damage = (content: Buffer) => content.fill(0x55, 20, 60)
    const content = linesOf(...Array.from({ length: 30 }, (_, n) => `Line ${n} of ${n * n}`))
    const pdf = makePdf([page("Fine."), { content, damage }, page("Fine, too.")])
    await expect(read(pdf)).rejects.toMatchObject({
      code: "broken",
      message: "Page 2 of 3 can't be read: the file is damaged.",
    })
  })

  it("is refused when it is no PDF, is empty, or has too many pages", async () => {
    const message = "The file's structure can't be read: the file is damaged."
    await expect(read(Buffer.from("%PDF-1.7 and nothing"))).rejects.toMatchObject({ message })
    await expect(read(Buffer.alloc(0))).rejects.toMatchObject({ code: "empty" })
    const pages = Array.from({ length: 4 }, () => page("Text."))
    await expect(read(makePdf(pages), 3)).rejects.toMatchObject({
      code: "too_large",
      message: "The file has 4 pages, which is more than 3.",
    })
  })

  it("is read as viewers do where its table of objects is lost", async () => {
    const pdf = makePdf([page("Text.")])
    pdf.write("9999", pdf.indexOf("startxref\n") + 10)
    expect(await read(pdf)).toMatchObject([{ text: "[Page 1]\nText.\n\n" }])
  })
})
