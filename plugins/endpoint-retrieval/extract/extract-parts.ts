import type { Kind } from "./kind.ts"

export type Bytes = AsyncIterable<Uint8Array>

/** A page, or a part of a text without pages. Joined, the parts are the extracted text. */
export interface Part {
  /** From 1 on; absent in formats without pages. */
  readonly page?: number
  readonly text: string
  /** The page has no text that can be seen but its mark. */
  readonly isBlank?: boolean
}

export interface ExtractLimits {
  readonly maxPages: number
}

type Extract = (bytes: Bytes, limits: ExtractLimits) => AsyncIterable<Part>

// loaded when they are needed: a process that reads texts never loads the PDF library
const plain = async () => (await import("./plain-text.ts")).plainText
const html = async () => (await import("./markup/read-html.ts")).readHtml

const extractors: Readonly<Record<Kind, () => Promise<Extract>>> = {
  pdf: async () => (await import("./pdf/read-pdf.ts")).readPdf,
  docx: async () => (await import("./markup/read-docx.ts")).readDocx,
  csv: async () => (await import("./read-csv.ts")).readCsv,
  html,
  htm: html,
  txt: plain,
  md: plain,
}

// PostgreSQL stores no zero characters, and no halves of surrogate pairs
const storable = (text: string): string => text.replace(/\p{Surrogate}|\0/gu, "\ufffd")

/** Fails with a `ReadFailure` where the file is at fault. */
export async function* extractParts(
  kind: Kind,
  bytes: Bytes,
  limits: ExtractLimits,
): AsyncGenerator<Part> {
  const extract = await extractors[kind]()
  for await (const part of extract(bytes, limits)) yield { ...part, text: storable(part.text) }
}
