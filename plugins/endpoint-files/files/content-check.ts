import { Effect, Stream } from "effect"
import { type ApiError, apiError } from "../../../core/index.ts"
import { extensionOf } from "./file-name.ts"
import type { UploadPurpose } from "./purpose.ts"

/** PDF readers accept some bytes before the `%PDF-` mark, but not more than this. */
const headBytes = 1024

const unsupported = (message: string, param: string): ApiError =>
  apiError("unsupported_file_type", message, { param })
const textTypes = ["txt", "md"]

/** Checks what is known before the bytes arrive. */
export const checkType = (
  purpose: UploadPurpose,
  name: string,
  param: string,
): Effect.Effect<void, ApiError> =>
  purpose === "batch_input" || ["pdf", ...textTypes].includes(extensionOf(name))
    ? Effect.void
    : Effect.fail(
        unsupported(
          "Knowledge files are PDF, TXT or MD, and their names end in .pdf, .txt or .md.",
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

/** The name declares a knowledge file's type; its first bytes must agree. */
export const checkHead = (
  purpose: UploadPurpose,
  name: string,
  head: Buffer,
  param: string,
): Effect.Effect<void, ApiError> => {
  if (purpose === "batch_input") return Effect.void
  const isPdf = head.includes("%PDF-")
  if (extensionOf(name) === "pdf")
    return isPdf
      ? Effect.void
      : Effect.fail(unsupported("The file is called .pdf, but is no PDF.", param))
  if (head.subarray(0, 5).toString("latin1") === "%PDF-")
    return Effect.fail(unsupported("The file is a PDF, but is not called .pdf.", param))
  return isText(head)
    ? Effect.void
    : Effect.fail(unsupported("The file is called a text, but is none in UTF-8.", param))
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
