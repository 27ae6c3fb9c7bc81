import type { IncomingMessage } from "node:http"
import type { Readable } from "node:stream"
import { createGunzip } from "node:zlib"
import { Effect, Scope } from "effect"
import { type ApiError, apiError } from "../../../core/errors.ts"
import type { Json } from "../../../core/json.ts"
import { defaultBounds, type Endpoint } from "../../../core/ports/endpoint.ts"
import type { Cohorts } from "../../services/cohorts.ts"
import { readyForBody } from "../connection/expect-continue.ts"
import type { Exchange } from "../exchange.ts"
import { type BodyBudget, type Reservation, smallBodyBytes } from "./body-budget.ts"
import { isForm, readFormAsJson } from "./form-as-json.ts"
import { JsonReader, requireJsonType } from "./json.ts"
import { formBytes, readMultipart } from "./multipart.ts"
import { nextBytes } from "./next-bytes.ts"
import type { Turns } from "./turns.ts"

export interface BodyDeps {
  readonly budget: BodyBudget
  readonly turns: Turns
  readonly cohorts: Cohorts
  readonly timings: { readonly bodyStallMs: number }
}

export interface ReadBody {
  readonly body: Json
  /** SHA-256 of a large JSON body that came with an `Idempotency-Key`. */
  readonly digest?: string | undefined
}

/** Who sends a body. */
export interface Sender {
  /** Whose memory it takes: an account, or the address of a client without one. */
  readonly holder: string
  /** `Limits.bodyMb`. */
  readonly bodyMb: number
}

interface SizeLimit {
  readonly bytes: number
  readonly of: string
}

/** What a large body must have on average, when it has been waited for longer than a stall. */
const leastBytesPerMs = 64

const megabytes = (bytes: number) =>
  bytes >= 2 ** 20 ? `${Math.floor(bytes / 2 ** 20)} MB` : `${bytes} bytes`
const tooLarge = ({ bytes, of }: SizeLimit) =>
  apiError("payload_too_large", `The body is larger than ${megabytes(bytes)}, the limit of ${of}.`)
const tooMuchText = (maxBytes: number) =>
  apiError(
    "payload_too_large",
    `The body has more than ${megabytes(maxBytes)} outside of media (data URIs, and fields named data), the limit of this endpoint.`,
  )

type Encoding = "identity" | "gzip"

const announcedEncoding = (req: IncomingMessage): string =>
  (req.headers["content-encoding"] ?? "").trim().toLowerCase() || "identity"
const badEncoding = (message: string, accepted: string) =>
  Effect.fail(
    apiError("unsupported_media_type", message, { headers: { "accept-encoding": accepted } }),
  )

const encodingOf = (req: IncomingMessage): Effect.Effect<Encoding, ApiError> => {
  const encoding = announcedEncoding(req)
  if (encoding === "identity") return Effect.succeed("identity")
  if (encoding === "gzip" || encoding === "x-gzip") return Effect.succeed("gzip")
  return badEncoding("The body's Content-Encoding must be gzip or identity.", "gzip, identity")
}

/**
 * A form is parsed while it arrives, and a file's length is taken from `Content-Length`: so no
 * compression.
 */
const requirePlainForm = (req: IncomingMessage): Effect.Effect<void, ApiError> =>
  announcedEncoding(req) === "identity"
    ? Effect.void
    : badEncoding("A form can't be compressed.", "identity")

/**
 * Unpacks in zlib's own thread, as fast as it is read. Packed bytes have the limit too, as members
 * without content unpack to nothing.
 */
const unpacked = (req: IncomingMessage, limit: SizeLimit) => {
  const gunzip = createGunzip({ chunkSize: smallBodyBytes })
  let bytes = 0
  const count = (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > limit.bytes) gunzip.destroy(tooLarge(limit))
  }
  // the reader asks for `errored`; an unhandled 'error' event would end the process
  gunzip.on("error", () => {})
  req.on("data", count).pipe(gunzip)
  const close = () => {
    req.off("data", count).unpipe(gunzip)
    req.pause()
    gunzip.destroy()
  }
  return { source: gunzip as Readable, close }
}

interface Sink {
  readonly isLarge: boolean
  push(bytes: Buffer): ApiError | undefined
  readonly end: Effect.Effect<Json, ApiError>
}

/** What takes long takes turns; decoding, which follows, is a piece of work of its own. */
const endOf = (sink: Sink, { take }: Turns): Effect.Effect<Json, ApiError> =>
  sink.isLarge
    ? Effect.andThen(
        take,
        Effect.flatMap(sink.end, (body) => Effect.as(take, body)),
      )
    : sink.end

/** Reads up to its limit and leaves the rest in the socket; a large body waits for its turns. */
const readInto = Effect.fnUntraced(function* (
  sink: Sink,
  source: Readable,
  limit: SizeLimit,
  reservation: Reservation,
  { turns, timings }: BodyDeps,
): Effect.fn.Return<Json, ApiError> {
  let bytes = 0
  let waitedMs = 0
  for (;;) {
    const isSmall = reservation.bytes() <= smallBodyBytes
    const allowedMs = timings.bodyStallMs + bytes / leastBytesPerMs - waitedMs
    const beganMs = performance.now()
    const chunk = yield* nextBytes(source, isSmall ? Number.POSITIVE_INFINITY : allowedMs)
    if (!chunk) break
    waitedMs += performance.now() - beganMs
    bytes += chunk.length
    if (bytes > limit.bytes) return yield* tooLarge(limit)
    const refusal = reservation.grow(Math.max(0, bytes - reservation.bytes()))
    if (refusal) return yield* refusal
    if (bytes > smallBodyBytes) yield* turns.take
    const wrong = sink.push(chunk)
    if (wrong) return yield* wrong
  }
  return yield* endOf(sink, turns)
})

const bufferSink = (): Sink => {
  const chunks: Buffer[] = []
  return {
    isLarge: false,
    push: (bytes) => {
      chunks.push(bytes)
      return undefined
    },
    end: Effect.sync(() => (chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks))),
  }
}

/** A small body whose length was announced: a piece or two that are there at once. */
const readSmall = (
  sink: Sink,
  req: IncomingMessage,
  reservation: Reservation,
  { turns, cohorts }: BodyDeps,
): Effect.Effect<Json, ApiError> =>
  Effect.flatMap(
    Effect.callback<void, ApiError>((resume) => {
      const take = (bytes: Buffer) => {
        const refusal = reservation.grow(bytes.length) ?? sink.push(bytes)
        if (!refusal) return
        stop()
        resume(Effect.fail(refusal))
      }
      const end = () => cohorts.go(() => resume(Effect.void))
      const stop = () => void req.off("data", take).off("end", end).pause()
      req.on("data", take).on("end", end)
      return Effect.sync(stop)
    }),
    () => endOf(sink, turns),
  )

const reserve = (reservation: Reservation, bytes: number): Effect.Effect<void, ApiError> =>
  reservation.grow(bytes) ?? Effect.void

/** A large body that is announced has its memory before it is asked for. */
const announcedBytes = (req: IncomingMessage, encoding: Encoding): number => {
  const bytes = encoding === "identity" ? Number(req.headers["content-length"] ?? 0) : 0
  return bytes > smallBodyBytes ? bytes : 0
}

/** Node reads no more of a body than was announced. */
const isSmall = ({ headers }: IncomingMessage): boolean =>
  Number(headers["content-length"] ?? Number.NaN) <= smallBodyBytes

/** What the whole body is read into, once its headers are found to be right. */
const openWhole = Effect.fnUntracedEager(function* (
  exchange: Exchange,
  endpoint: Endpoint,
  limit: SizeLimit,
  reservation: Reservation,
): Effect.fn.Return<{ json: JsonReader; sink: Sink; encoding: Encoding }, ApiError> {
  const { req } = exchange
  const maxTextBytes = endpoint.maxTextBytes ?? limit.bytes
  const isJson = endpoint.body !== "bytes"
  if (isJson) yield* requireJsonType(req.headers["content-type"], endpoint)
  const encoding = yield* encodingOf(req)
  yield* reserve(reservation, announcedBytes(req, encoding))
  readyForBody(exchange)
  const json = new JsonReader({
    bounds: endpoint.bounds ?? defaultBounds,
    maxTextBytes,
    tooMuchText: () => tooMuchText(maxTextBytes),
    hashes: endpoint.creates === true && req.headers["idempotency-key"] !== undefined,
  })
  return { json, sink: isJson ? json : bufferSink(), encoding }
})

const readWhole = (
  exchange: Exchange,
  endpoint: Endpoint,
  limit: SizeLimit,
  reservation: Reservation,
  deps: BodyDeps,
): Effect.Effect<ReadBody, ApiError> =>
  Effect.flatMapEager(
    openWhole(exchange, endpoint, limit, reservation),
    ({ json, sink, encoding }) => {
      const { req } = exchange
      const read = (body: Json): ReadBody => ({
        body,
        digest: sink === json ? json.digest() : undefined,
      })
      if (encoding === "identity" && isSmall(req))
        return Effect.map(readSmall(sink, req, reservation, deps), read)
      const { source, close } =
        encoding === "gzip" ? unpacked(req, limit) : { source: req, close: () => void req.pause() }
      const whole = readInto(sink, source, limit, reservation, deps)
      return Effect.map(Effect.ensuring(whole, Effect.sync(close)), read)
    },
  )

/**
 * The smallest of the limits of the endpoint, of the memory for bodies, and of the key. Files are no
 * JSON: their endpoints alone limit them.
 */
const sizeLimitOf = (
  { body, maxBodyBytes }: Endpoint,
  { bodyMb }: Sender,
  { budget }: BodyDeps,
): SizeLimit => {
  const ofKey = { bytes: bodyMb * 2 ** 20, of: "this key (`limits.body_mb`)" }
  const bytes = body === "multipart" ? maxBodyBytes : Math.min(maxBodyBytes, budget.maxBytes)
  const isJson = typeof body !== "string"
  return isJson && ofKey.bytes < bytes ? ofKey : { bytes, of: "this endpoint" }
}

/**
 * Returns a JSON value (of a form, too, where the endpoint reads one), a `MultipartBody`, a `Buffer`
 * for `bytes`, or `undefined` for `none`.
 * Order of the checks: announced length (413) -> type (415) -> encoding (415) -> memory (429) ->
 * length as it arrives (413) -> content (400).
 * For a form the encoding is checked before the type.
 */
export const readBody = Effect.fnUntraced(function* (
  exchange: Exchange,
  endpoint: Endpoint,
  sender: Sender,
  deps: BodyDeps,
): Effect.fn.Return<ReadBody, ApiError, Scope.Scope> {
  const { req } = exchange
  if (endpoint.body === "none") return { body: undefined }
  const isFormOnly = endpoint.body === "multipart"
  const limit = sizeLimitOf(endpoint, sender, deps)
  if (Number(req.headers["content-length"] ?? 0) > limit.bytes) return yield* tooLarge(limit)
  const reservation = deps.budget.open(sender.holder)
  // the decoded body lives as long as the call
  yield* Scope.addFinalizerExit(yield* Effect.scope, () => {
    reservation.release()
    return Effect.void
  })
  const alsoForm = isForm(req) ? endpoint.readForm : undefined
  if (!isFormOnly && !alsoForm)
    return yield* readWhole(exchange, endpoint, limit, reservation, deps)
  yield* requirePlainForm(req)
  const parts = yield* readMultipart(exchange, limit.bytes, () => tooLarge(limit), deps.turns)
  yield* reserve(reservation, formBytes)
  if (!alsoForm) return { body: parts }
  const hashes = endpoint.creates === true && req.headers["idempotency-key"] !== undefined
  return yield* readFormAsJson(parts, alsoForm, reservation, hashes)
})
