import { Effect, Stream } from "effect"
import { type ApiError, apiError } from "../../../core/index.ts"
import { extensionOf } from "./file-name.ts"
import type { UploadPurpose } from "./purpose.ts"

/** PDF readers accept some bytes before the `%PDF-` mark, but not more than this. */
const headBytes = 1024

const unsupported = (message: string, param: string): ApiError =>
  apiError("unsupported_file_type", message, { param })

/** The bytes that a knowledge file of each extension must begin with. */
const contents = new Map<string, "pdf" | "word" | "html" | "text">([
  ["pdf", "pdf"],
  ["docx", "word"],
  ...["html", "htm"].map((extension) => [extension, "html"] as const),
  ...["txt", "md", "csv"].map((extension) => [extension, "text"] as const),
])

/** Checks what is known before the bytes arrive. */
export const checkType = (
  purpose: UploadPurpose,
  name: string,
  param: string,
): Effect.Effect<void, ApiError> =>
  purpose === "batch_input" || contents.has(extensionOf(name))
    ? Effect.void
    : Effect.fail(
        unsupported(
          "Knowledge files are PDF, TXT, MD, HTML, DOCX or CSV, and their names end so, as in notes.txt.",
          param,
        ),
      )

/** The head may end within a character. */
const isText = (head: Buffer): boolean => {
  try {
    return !new TextDecoder("utf-8", { fatal: true }).decode(head, { stream: true }).includes("\0")
  } catch {
    return false
  }
}

const startsWith = (head: Buffer, magic: string): boolean =>
  head.subarray(0, magic.length).toString("latin1") === magic

/** A ZIP archive, and the compound file that encrypted documents are wrapped in. */
const wordStarts = ["PK\x03\x04", "\xd0\xcf\x11\xe0"]

/** Returns why the bytes are not what the name says; undefined where they agree. */
const contradiction = (extension: string, head: Buffer): string | undefined => {
  const wanted = contents.get(extension)
  // ingest says that it is empty
  if (head.length === 0) return undefined
  if (wanted === "pdf")
    return head.includes("%PDF-") ? undefined : "The file is called .pdf, but is no PDF."
  if (startsWith(head, "%PDF-")) return "The file is a PDF, but is not called .pdf."
  if (wanted === "word")
    return wordStarts.some((magic) => startsWith(head, magic))
      ? undefined
      : `The file is called .${extension}, but is no Word document of that format.`
  // a page may name another encoding
  if (wanted === "html")
    return head.includes(0) ? `The file is called .${extension}, but is no page.` : undefined
  return isText(head)
    ? undefined
    : `The file is called .${extension}, which is text, but is no text in UTF-8. Save it as UTF-8, then upload it again.`
}

/** The name declares a knowledge file's type; its first bytes must agree. */
export const checkHead = (
  purpose: UploadPurpose,
  name: string,
  head: Buffer,
  param: string,
): Effect.Effect<void, ApiError> => {
  const problem = purpose === "knowledge" ? contradiction(extensionOf(name), head) : undefined
  return problem === undefined ? Effect.void : Effect.fail(unsupported(problem, param))
}

/** Keeps the first bytes of a stream that passes through. */
export const headOf = () => {
  const kept: Buffer[] = []
  let bytes = 0
  return {
    head: () => Buffer.concat(kept),
    keep: <E>(body: Stream.Stream<Uint8Array, E>): Stream.Stream<Uint8Array, E> =>
      Stream.map(body, (chunk) => {
        if (bytes < headBytes) kept.push(Buffer.from(chunk.subarray(0, headBytes - bytes)))
        bytes = Math.min(headBytes, bytes + chunk.byteLength)
        return chunk
      }),
  }
}
