import type { IncomingMessage } from "node:http"

const opaque = (tag: string): string => tag.trim().replace(/^W\//, "")

/** The client has this version already (RFC 9110, 13.1.2: weak comparison). */
export const isKnownTo = ({ method, headers }: IncomingMessage, etag: string | undefined): boolean => {
  const known = headers["if-none-match"]
  if (etag === undefined || known === undefined || (method !== "GET" && method !== "HEAD")) return false
  return known.trim() === "*" || known.split(",").some((tag) => opaque(tag) === opaque(etag))
}
