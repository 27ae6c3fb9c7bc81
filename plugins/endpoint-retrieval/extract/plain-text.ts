import { decodeText } from "./decode-text.ts"
import type { Bytes, Part } from "./extract-parts.ts"

/**
 * The text as it is: a byte order mark and carriage returns are characters of it, so offsets hold
 * for whoever decodes the same bytes.
 */
export async function* plainText(bytes: Bytes): AsyncGenerator<Part> {
  for await (const text of decodeText(bytes, { keepsMark: true })) yield { text }
}
