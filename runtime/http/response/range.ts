import type { IncomingMessage } from "node:http"

export interface ByteRange {
  readonly from: number
  /** Inclusive. */
  readonly to: number
}

/**
 * The one range that a request asks for (RFC 9110, 14.2): `whole` when it asks for none, for several, or in a unit that is not ours; `unsatisfiable` when it lies
 * behind the end. With `If-Range` only while the bytes are still those of that ETag.
 */
export const rangeOf = (
  { method, headers }: IncomingMessage,
  totalBytes: number,
  etag: string | undefined,
): ByteRange | "whole" | "unsatisfiable" => {
  const condition = headers["if-range"]
  if (
    method !== "GET" ||
    (condition !== undefined && (condition !== etag || condition.startsWith("W/")))
  )
    return "whole"
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
