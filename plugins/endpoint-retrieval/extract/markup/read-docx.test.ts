import { describe, expect, it } from "vitest"
import { makeZip } from "../../testing/make-zip.ts"
import { textOf } from "../../testing/read-parts.ts"

const relations = (target: string) =>
  `<Relationships><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" Target="${target}"/></Relationships>`
const document = (body: string) =>
  `<?xml version="1.0" encoding="UTF-8"?><w:document><w:body>${body}</w:body></w:document>`
const paragraph = (text: string) => `<w:p><w:r><w:t xml:space="preserve">${text}</w:t></w:r></w:p>`
const docx = (body: string, more: Readonly<Record<string, string>> = {}) =>
  makeZip({
    "_rels/.rels": relations("word/document.xml"),
    "word/document.xml": document(body),
    ...more,
  })

describe("a Word document", () => {
  it("gives paragraphs, tables and notes, without what was deleted", async () => {
    const cell = (text: string) => `<w:tc>${paragraph(text)}</w:tc>`
    const body = [
      paragraph("Gr\u00fc\u00dfe &amp; more"),
      "<w:p/>",
      "<w:p><w:r><w:t>One</w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:r><w:tab/><w:t>two</w:t><w:br/><w:t>three</w:t></w:r></w:p>",
      `<w:tbl><w:tr>${cell("A")}${cell("B")}</w:tr><w:tr>${cell("1")}${cell("2")}</w:tr></w:tbl>`,
      `<mc:AlternateContent><mc:Choice>${paragraph("Box")}</mc:Choice><mc:Fallback>${paragraph("Box")}</mc:Fallback></mc:AlternateContent>`,
    ].join("")
    const notes = `<w:footnotes><w:footnote>${paragraph("A note.")}</w:footnote></w:footnotes>`
    expect(await textOf("docx", docx(body, { "word/footnotes.xml": notes }))).toBe(
      "Gr\u00fc\u00dfe & more\n\nOne two\nthree\n\nA | B\n1 | 2\n\nBox\n\nA note.\n\n",
    )
  })

  it("is found where the package says", async () => {
    const file = makeZip({
      "_rels/.rels": relations("/text/main.xml"),
      "text/main.xml": document(paragraph("Here.")),
    })
    expect(await textOf("docx", file)).toBe("Here.\n\n")
  })

  it("is refused when it is damaged, encrypted, no document, or too large", async () => {
    const whole = docx(paragraph("Some text of a document. ".repeat(1000)))
    await expect(textOf("docx", whole.subarray(0, 300))).rejects.toMatchObject({ code: "broken" })
    await expect(textOf("docx", makeZip({ "a.txt": "b" }))).rejects.toMatchObject({
      message: "The file is no Word document: it has no text part.",
    })
    await expect(textOf("docx", Buffer.from("d0cf11e0a1b1", "hex"))).rejects.toMatchObject({
      code: "encrypted",
    })
    await expect(textOf("docx", "")).rejects.toMatchObject({ code: "empty" })
    const flagged = Buffer.from(whole)
    for (const mark of ["PK\x03\x04", "PK\x01\x02"])
      for (let at = flagged.indexOf(mark); at >= 0; at = flagged.indexOf(mark, at + 1))
        flagged[at + (mark.endsWith("\x04") ? 6 : 8)]! |= 1
    await expect(textOf("docx", flagged)).rejects.toMatchObject({ code: "encrypted" })
    const bent = Buffer.from(whole)
    bent.fill(
      0xff,
      bent.lastIndexOf("word/document.xml", bent.indexOf("PK\x01\x02")) + 20,
      bent.indexOf("PK\x01\x02"),
    )
    await expect(textOf("docx", bent)).rejects.toMatchObject({ code: "broken" })
  })
})
