import { randomBytes } from "node:crypto"

/** Our own id of one call, a UUIDv7 (RFC 9562, section 5.7), so that rows lie in the order they came. `X-Request-ID` is only the client's label. */
export type CallId = string
export type ModelId = string

export interface Ids {
  call(): CallId
  /** `prefix` plus 24 random characters, as in `chatcmpl-9f3K...`. */
  make(prefix: string): string
}

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

/** `length` characters from a CSPRNG, without modulo bias: bytes of 248 and above are thrown away. */
export const randomText = (length: number): string => {
  let text = ""
  while (text.length < length) for (const byte of randomBytes(length * 2)) if (byte < 248 && text.length < length) text += alphabet.charAt(byte % 62)
  return text
}

export const uuidV7 = (nowMs: number): string => {
  const bytes = randomBytes(16)
  bytes.writeUIntBE(nowMs, 0, 6)
  bytes[6] = 0x70 | (bytes.readUInt8(6) & 0x0f)
  bytes[8] = 0x80 | (bytes.readUInt8(8) & 0x3f)
  const hex = bytes.toString("hex")
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

export const makeIds = (nowMs: () => number): Ids => ({
  call: () => uuidV7(nowMs()),
  make: (prefix) => prefix + randomText(24),
})
