import { expect, it } from "vitest"
import type { Kind } from "../extract/kind.ts"
import { makePdf } from "../testing/make-pdf.ts"
import { makeZip } from "../testing/make-zip.ts"
import { readBatches } from "./read-batches.ts"

const limits = { chunkCharacters: 1000, chunkOverlap: 200, maxChunks: 1000, maxPages: 50 }

const read = async (kind: Kind, file: string | Uint8Array) => {
  async function* bytes() {
    yield Buffer.from(file as string)
  }
  for await (const _ of readBatches(kind, bytes(), limits));
}

const docx = makeZip({
  "word/document.xml": "<w:document><w:p><w:t>\u200b</w:t></w:p></w:document>",
})
const blank = { content: "" }
const empty = "The file is empty."
const noText = "The file holds no text."

it.each<[string, Kind, string | Uint8Array, string, string]>([
  ["nothing", "txt", "", "empty", empty],
  ["nothing", "html", "", "empty", empty],
  ["nothing", "csv", "", "empty", empty],
  ["nothing", "docx", "", "empty", empty],
  ["nothing", "pdf", "", "empty", empty],
  ["white space", "txt", " \n\u00a0\t", "empty", noText],
  ["invisible characters", "txt", "\u200b\u200d\ufeff \u2060", "empty", noText],
  ["many invisible characters", "md", "\u200b\n".repeat(9000), "empty", noText],
  ["invisible characters", "csv", "\u200b,\u200b\n\u200b,\u200b\n", "empty", noText],
  ["invisible characters", "docx", docx, "empty", noText],
  ["a script alone", "html", "<html><script>1</script></html>", "empty", noText],
  ["a page", "pdf", makePdf([blank]), "no_text", "Its page is blank, or a picture"],
  ["pages", "pdf", makePdf([blank, blank]), "no_text", "Its 2 pages are blank, or pictures"],
])("says what a file of %s (%s) is", async (_, kind, file, code, message) => {
  await expect(read(kind, file)).rejects.toMatchObject({
    code,
    message: expect.stringContaining(message),
  })
})
