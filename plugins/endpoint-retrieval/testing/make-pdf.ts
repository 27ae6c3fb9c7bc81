import { deflateSync } from "node:zlib"

export interface PdfPage {
  /** Content operators; see `linesOf`. */
  readonly content: string
  /** Dictionaries of what lies on the page. */
  readonly annotations?: readonly string[]
  /** What happens to the compressed content. */
  readonly damage?: (content: Buffer) => Buffer
}

/** Operators that show lines of a page, from its top; an empty one leaves a gap. */
export const linesOf = (...lines: readonly string[]): string =>
  `BT /F 12 Tf 14 TL 50 700 Td ${lines.map((line) => `(${line}) Tj T*`).join(" ")} ET`

/** A PDF with a table of its objects, as small as one can be. */
export const makePdf = (pages: readonly PdfPage[]): Buffer => {
  const parts: Buffer[] = [Buffer.from("%PDF-1.7\n")]
  const places: number[] = []
  let length = parts[0]!.length
  const add = (...some: readonly (string | Buffer)[]) => {
    for (const one of some) {
      const bytes = Buffer.from(one as string)
      parts.push(bytes)
      length += bytes.length
    }
  }
  const object = (...body: readonly (string | Buffer)[]) => {
    places.push(length)
    add(`${places.length} 0 obj\n`, ...body, "\nendobj\n")
  }
  const kids = pages.map((_, n) => `${4 + 2 * n} 0 R`).join(" ")
  object("<< /Type /Catalog /Pages 2 0 R >>")
  object(`<< /Type /Pages /Count ${pages.length} /Kids [${kids}] >>`)
  object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
  for (const [n, page] of pages.entries()) {
    const { content, annotations = [], damage = (same: Buffer) => same } = page
    const stream = damage(deflateSync(content))
    object(
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents ${5 + 2 * n} 0 R`,
      ` /Resources << /Font << /F 3 0 R >> >> /Annots [${annotations.join(" ")}] >>`,
    )
    object(`<< /Filter /FlateDecode /Length ${stream.length} >>\nstream\n`, stream, "\nendstream")
  }
  const rows = places.map((at) => `${String(at).padStart(10, "0")} 00000 n \n`)
  add(
    `xref\n0 ${places.length + 1}\n0000000000 65535 f \n${rows.join("")}`,
    `trailer\n<< /Size ${places.length + 1} /Root 1 0 R >>\nstartxref\n${length}\n%%EOF\n`,
  )
  return Buffer.concat(parts)
}
