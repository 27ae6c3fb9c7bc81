import { Effect, Stream } from "effect"
import { type ApiError, apiError } from "../../../core/errors.ts"
import type { Json, Strings } from "../../../core/json.ts"
import type { Reply } from "../../../core/ports/endpoint.ts"
import { endAfterDiscarding, leavesBodyUnread } from "../connection/linger.ts"
import type { Exchange } from "../exchange.ts"
import { checkPreconditions, rangeOf } from "./conditional.ts"
import { encoded } from "./content-coding.ts"
import { write, writeHead } from "./write.ts"

interface Head {
  readonly status: number
  readonly headers?: Strings
}

/** Writes the whole reply. Does nothing when the client has disconnected. */
export const sendText = (
  exchange: Exchange,
  { status, headers }: Head,
  text: string,
  lingerMs: number,
): void => {
  const { req, res } = exchange
  if (res.headersSent || res.destroyed) return
  const isHead = req.method === "HEAD"
  const unread = leavesBodyUnread(exchange)
  if (unread) res.shouldKeepAlive = false
  writeHead(exchange, status, headers, status === 204 ? undefined : Buffer.byteLength(text))
  // a string is written in one piece with the head; bytes would be a second packet
  if (isHead || !unread) return void exchange.answer(isHead ? "" : text)
  res.write(text)
  endAfterDiscarding(exchange, lingerMs)
}

export const sendJson = (
  exchange: Exchange,
  reply: Head & { readonly json: Json; readonly text?: string },
  lingerMs: number,
): void =>
  sendText(
    exchange,
    {
      status: reply.status,
      headers: { "content-type": "application/json; charset=utf-8", ...reply.headers },
    },
    reply.text ?? JSON.stringify(reply.json) ?? "",
    lingerMs,
  )

type BytesReply = Extract<Reply, { readonly mediaType: string }>

/** Applies `Range` where the reply supports it. */
const partOf = ({ req }: Exchange, reply: BytesReply): Effect.Effect<BytesReply, ApiError> => {
  const { ranged, headers, status } = reply
  if (!ranged || status !== 200) return Effect.succeed(reply)
  const { totalBytes, slice } = ranged
  const range = rangeOf(req, totalBytes, headers ?? {})
  const more = (length: number) => ({
    ...headers,
    "accept-ranges": "bytes",
    "content-length": String(length),
  })
  if (range === "whole") return Effect.succeed({ ...reply, headers: more(totalBytes) })
  if (range === "unsatisfiable")
    return Effect.fail(
      apiError("range_not_satisfiable", undefined, {
        headers: { "content-range": `bytes */${totalBytes}` },
      }),
    )
  const { from, to } = range
  return Effect.succeed({
    ...reply,
    status: 206,
    headers: { ...more(to - from + 1), "content-range": `bytes ${from}-${to}/${totalBytes}` },
    bytes: slice(from, to),
  })
}

const ofCall = (headers: Strings = {}): Strings =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => /^(x-|server-timing$)/.test(name)))

/**
 * Keeps the headers that describe the call (`x-...`, `server-timing`) on an error, without those
 * that describe the bytes.
 */
const withCallHeaders =
  (headers: Strings = {}) =>
  ({ code, message, param, retryAfterMs, headers: own }: ApiError): ApiError => {
    return apiError(code, message, {
      param,
      headers: { ...ofCall(headers), ...own },
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    })
  }

/**
 * Whether the client is sent to where the bytes are, too. Conditions are about the tag that is known
 * here, a link is signed for GET, and a page may not read what another origin sends.
 */
const isForwarded = ({ req }: Exchange, { location, status }: BytesReply): boolean =>
  location !== undefined &&
  status === 200 &&
  req.method === "GET" &&
  req.headers.origin === undefined &&
  !Object.keys(req.headers).some((name) => name.startsWith("if-"))

const sendAway = (exchange: Exchange, { location, headers }: BytesReply): void => {
  const { res } = exchange
  if (res.destroyed) return
  writeHead(exchange, 302, {
    ...ofCall(headers),
    location: location!,
    "cache-control": "private, no-store",
    "content-length": "0",
  })
  res.end()
}

/**
 * Streams with backpressure. The head is sent with the first bytes, so that an early error keeps
 * its status; a later one cuts the connection.
 */
export const sendBytes = (
  exchange: Exchange,
  reply: BytesReply,
  stallMs: number,
): Effect.Effect<void, ApiError> =>
  Effect.flatMap(encoded(exchange, reply), (whole) => sendEncoded(exchange, whole, stallMs))

const sendEncoded = (
  exchange: Exchange,
  whole: BytesReply,
  stallMs: number,
): Effect.Effect<void, ApiError> =>
  Effect.suspend(() => {
    const { req, res } = exchange
    const precondition = whole.status === 200 ? checkPreconditions(req, whole.headers) : "send"
    if (precondition === "failed") return Effect.fail(apiError("precondition_failed"))
    if (precondition === "send")
      return Effect.flatMap(partOf(exchange, whole), (reply) =>
        isForwarded(exchange, whole)
          ? Effect.sync(() => sendAway(exchange, whole))
          : streamBytes(exchange, reply, stallMs),
      )
    const { "content-length": _, "content-encoding": __, ...headers } = whole.headers ?? {}
    if (!res.destroyed) {
      writeHead(exchange, 304, headers)
      res.end()
    }
    return Effect.void
  }).pipe(Effect.mapError(withCallHeaders(whole.headers)))

const streamBytes = (
  exchange: Exchange,
  reply: BytesReply,
  stallMs: number,
): Effect.Effect<void, ApiError> =>
  Effect.suspend(() => {
    const { req, res } = exchange
    const open = () => {
      if (!res.headersSent && !res.destroyed)
        writeHead(exchange, reply.status, { "content-type": reply.mediaType, ...reply.headers })
    }
    if (req.method === "HEAD") {
      open()
      res.end()
      return Effect.void
    }
    const send = (bytes: Uint8Array) => {
      open()
      return write(res, bytes, stallMs)
    }
    return Stream.runForEach(reply.bytes, send).pipe(
      Effect.andThen(
        Effect.sync(() => {
          open()
          res.end()
        }),
      ),
    )
  })
