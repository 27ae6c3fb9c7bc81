import { randomUUID } from "node:crypto"
import { customAlphabet } from "nanoid"

/**
 * Our own id of one call, a UUIDv7 (RFC 9562, section 5.7), so that rows sort by creation time.
 * `X-Request-ID` is only a label of the client.
 */
export type CallId = string
export type ModelId = string

export interface Ids {
  call(): CallId
  /** Returns `prefix` plus 24 random characters, as in `chatcmpl-9f3K...`. */
  make(prefix: string): string
}

/** `length` letters and digits from a CSPRNG, without modulo bias. */
export const randomText = customAlphabet(
  "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
  24,
)

/**
 * A UUIDv4 already has the variant and 74 random bits where a v7 wants them: only time and version
 * are put in front.
 */
export const uuidV7 = (nowMs: number): string => {
  const time = nowMs.toString(16).padStart(12, "0")
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`
}

export const makeIds = (nowMs: () => number): Ids => ({
  call: () => uuidV7(nowMs()),
  make: (prefix) => prefix + randomText(),
})
