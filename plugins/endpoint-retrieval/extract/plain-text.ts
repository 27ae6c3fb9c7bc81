import type { Bytes, Part } from "./extract-parts.ts"
import { ReadFailure } from "./read-failure.ts"

/**
 * The text as it is: a byte order mark and carriage returns are characters of it, so offsets hold
 * for whoever decodes the same bytes.
 */
export async function* plainText(bytes: Bytes): AsyncGenerator<Part> {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
  const decode = (chunk?: Uint8Array) => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined })
    } catch {
      throw new ReadFailure("broken", "The file is not a text in UTF-8.")
    }
  }
  for await (const chunk of bytes) yield { text: decode(chunk) }
  yield { text: decode() }
}
