import type { Bytes } from "./extract-parts.ts"

/** All bytes in one piece of their own, for formats that are read from their end. */
export const wholeOf = async (bytes: Bytes): Promise<Uint8Array<ArrayBuffer>> => {
  const parts: Uint8Array[] = []
  for await (const part of bytes) parts.push(part)
  const whole = new Uint8Array(parts.reduce((sum, { byteLength }) => sum + byteLength, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.byteLength
  }
  return whole
}
