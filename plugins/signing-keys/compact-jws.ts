import { isUtf8 } from "node:buffer"
import type { Json, SigningPurpose } from "../../core/index.ts"
import { algorithm } from "./key-pair.ts"

export const maxCharacters = 8 * 1024

/** Three parts in base64url; an Ed25519 signature has 64 bytes. */
const form = /^([\w-]+)\.([\w-]+)\.([\w-]{86})$/

const parse = (base64url: string): Json => {
  const bytes = Buffer.from(base64url, "base64url")
  if (!isUtf8(bytes)) return undefined
  try {
    return JSON.parse(bytes.toString("utf8")) as Json
  } catch {
    return undefined
  }
}

/**
 * `typ` names the purpose (RFC 8725, section 3.11), so that nobody who only has the public keys
 * takes a session for a receipt.
 */
export const headerOf = (purpose: SigningPurpose, kid: string) => ({
  alg: algorithm,
  kid,
  typ: `${purpose}+jws`,
})

export interface CompactJws {
  readonly kid: string
  readonly payload: Json
}

/**
 * Parses a compact JWS without checking its signature; undefined when it can't be one that this
 * plugin made for this purpose.
 */
export const readCompactJws = (jws: unknown, purpose: SigningPurpose): CompactJws | undefined => {
  if (typeof jws !== "string" || jws.length > maxCharacters) return undefined
  const [, head, body, signature] = form.exec(jws) ?? []
  if (head === undefined || body === undefined || signature === undefined) return undefined
  // the last letter has unused bits; only one spelling of a signature is accepted
  if (Buffer.from(signature, "base64url").toString("base64url") !== signature) return undefined
  const header = parse(head)
  if (typeof header !== "object" || header === null || Array.isArray(header)) return undefined
  const { alg, kid, typ, ...rest } = header as Record<string, unknown>
  if (
    alg !== algorithm ||
    typeof kid !== "string" ||
    typ !== headerOf(purpose, kid).typ ||
    Object.keys(rest).length > 0
  )
    return undefined
  const payload = parse(body)
  return payload === undefined ? undefined : { kid, payload }
}
