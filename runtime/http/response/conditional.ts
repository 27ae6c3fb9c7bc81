import type { IncomingHttpHeaders, IncomingMessage } from "node:http"
import type { Strings } from "../../../core/json.ts"

const tagsOf = (header: string): readonly string[] => header.split(",").map((tag) => tag.trim())
const opaque = (tag: string): string => tag.replace(/^W\//, "")

/** The strong comparison (RFC 9110, 8.8.3.2), which `If-Match` needs. */
const matches = (known: string, etag: string): boolean =>
  known.trim() === "*" || (!etag.startsWith("W/") && tagsOf(known).includes(etag))
const matchesWeakly = (known: string, etag: string): boolean =>
  known.trim() === "*" || tagsOf(known).some((tag) => opaque(tag) === opaque(etag))

/**
 * NaN for a missing or unreadable date: every comparison with it is false, so such a condition is
 * ignored.
 */
const dateOf = (header: string | undefined): number => Date.parse(header ?? "")

const isFailed = (headers: IncomingHttpHeaders, etag: string, modified: number): boolean => {
  const known = headers["if-match"]
  return known === undefined
    ? modified > dateOf(headers["if-unmodified-since"])
    : !matches(known, etag)
}

const isKnown = (headers: IncomingHttpHeaders, etag: string, modified: number): boolean => {
  const known = headers["if-none-match"]
  return known === undefined
    ? modified <= dateOf(headers["if-modified-since"])
    : matchesWeakly(known, etag)
}

/**
 * Evaluates the preconditions of a request (RFC 9110, 13.2.2): `known` leads to 304, `failed` to
 * 412.
 */
export const checkPreconditions = (
  { method, headers }: IncomingMessage,
  reply: Strings = {},
): "send" | "known" | "failed" => {
  const { etag, "last-modified": modified } = reply
  if (etag === undefined || (method !== "GET" && method !== "HEAD")) return "send"
  if (isFailed(headers, etag, dateOf(modified))) return "failed"
  return isKnown(headers, etag, dateOf(modified)) ? "known" : "send"
}

export interface ByteRange {
  readonly from: number
  /** Inclusive. */
  readonly to: number
}

/**
 * The one range that a request asks for (RFC 9110, 14.2): `whole` when it asks for none, for
 * several, or in another unit than
 * bytes; `unsatisfiable` when it begins after the end. `If-Range` with another ETag or another date
 * makes it `whole`.
 */
export const rangeOf = (
  { method, headers }: IncomingMessage,
  totalBytes: number,
  { etag, "last-modified": modified }: Strings,
): ByteRange | "whole" | "unsatisfiable" => {
  const condition = headers["if-range"]
  const isSame =
    condition === undefined ||
    ([etag, modified].some((known) => known === condition) && !String(condition).startsWith("W/"))
  if (method !== "GET" || !isSame) return "whole"
  const [, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/i.exec(headers.range?.trim() ?? "") ?? []
  if (first === "" && last === "") return "whole"
  if (first === "")
    return Number(last) === 0 || totalBytes === 0
      ? "unsatisfiable"
      : { from: Math.max(0, totalBytes - Number(last)), to: totalBytes - 1 }
  const from = Number(first)
  const to = last === "" ? totalBytes - 1 : Math.min(Number(last), totalBytes - 1)
  if (last !== "" && Number(last) < from) return "whole"
  return from >= totalBytes ? "unsatisfiable" : { from, to }
}
