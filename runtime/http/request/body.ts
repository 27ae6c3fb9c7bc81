import type { IncomingMessage } from "node:http"
import { createGunzip } from "node:zlib"
import { Effect, type Scope } from "effect"
import { type ApiError, apiError } from "../../../core/errors.ts"
import type { Json } from "../../../core/json.ts"
import type { Endpoint } from "../../../core/ports/endpoint.ts"
import type { Exchange } from "../exchange.ts"
import { readyForBody } from "./expect-continue.ts"
import { parseJson, requireJsonType } from "./json.ts"
import { readMultipart } from "./multipart.ts"

/** The memory that the bodies of all open requests may take together. */
export interface BodyBudget {
  take(bytes: number): boolean
  giveBack(bytes: number): void
}

export const makeBodyBudget = (maxBytes: number): BodyBudget => {
  let held = 0
  return {
    take: (bytes) => {
      if (held + bytes > maxBytes) return false
      held += bytes
      return true
    },
    giveBack: (bytes) => {
      held -= bytes
    },
  }
}

const megabytes = (bytes: number) =>
  bytes >= 2 ** 20 ? `${Math.floor(bytes / 2 ** 20)} MB` : `${bytes} bytes`
const tooLarge = (maxBytes: number) =>
  apiError(
    "payload_too_large",
    `The body is larger than ${megabytes(maxBytes)}, the limit of this endpoint.`,
  )
const tooMany = () =>
  apiError("backend_busy", "The server holds too many large bodies at the moment.", {
    retryAfterMs: 2_000,
  })

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
 * Reads up to `maxBytes` and leaves the rest in the socket. A client that disconnects aborts the
 * exchange, which interrupts this.
 */
const collect = (
  req: IncomingMessage,
  maxBytes: number,
  reserve: (bytes: number) => boolean,
): Effect.Effect<Buffer, ApiError> =>
  Effect.callback((resume) => {
    const chunks: Buffer[] = []
    let bytes = 0
    const stop = () => {
      req.off("data", onData).off("end", onEnd)
      req.pause()
    }
    const fail = (error: ApiError) => {
      stop()
      resume(Effect.fail(error))
    }
    const onData = (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > maxBytes) return fail(tooLarge(maxBytes))
      if (!reserve(chunk.length)) return fail(tooMany())
      chunks.push(chunk)
    }
    const onEnd = () => {
      stop()
      resume(Effect.succeed(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, bytes)))
    }
    req.on("data", onData).on("end", onEnd)
    return Effect.sync(stop)
  })

/**
 * Unpacks in zlib's own thread and stops at `maxBytes`, against zip bombs; each piece is reserved,
 * against many of them at once.
 */
const unpack = (
  packed: Buffer,
  maxBytes: number,
  reserve: (bytes: number) => boolean,
): Effect.Effect<Buffer, ApiError> =>
  Effect.callback((resume) => {
    const gunzip = createGunzip({ chunkSize: 64 * 1024 })
    const chunks: Buffer[] = []
    let bytes = 0
    const fail = (error: ApiError) => {
      gunzip.destroy()
      resume(Effect.fail(error))
    }
    gunzip.on("data", (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > maxBytes) return fail(tooLarge(maxBytes))
      if (!reserve(chunk.length)) return fail(tooMany())
      chunks.push(chunk)
    })
    gunzip.once("end", () => resume(Effect.succeed(Buffer.concat(chunks, bytes))))
    gunzip.on("error", () => fail(apiError("invalid_json", "The body is not valid gzip.")))
    gunzip.end(packed)
    return Effect.sync(() => void gunzip.destroy())
  })

const read = (
  exchange: Exchange,
  encoding: Encoding,
  maxBytes: number,
  budget: BodyBudget,
): Effect.Effect<Buffer, ApiError, Scope.Scope> =>
  Effect.gen(function* () {
    let held = 0
    const reserve = (bytes: number) => {
      const fits = budget.take(bytes)
      if (fits) held += bytes
      return fits
    }
    // the decoded body lives as long as the call, so its reservation is released with the Scope
    yield* Effect.addFinalizer(() => Effect.sync(() => budget.giveBack(held)))
    readyForBody(exchange)
    const bytes = yield* collect(exchange.req, maxBytes, reserve)
    return encoding === "identity" ? bytes : yield* unpack(bytes, maxBytes, reserve)
  })

/**
 * Returns a JSON value, a `MultipartBody`, a `Buffer` for `bytes`, or `undefined` for `none`.
 * Order of the checks: announced length (413) -> type (415) -> encoding (415) -> length as it
 * arrives (413) -> content (400).
 * For a form the encoding is checked before the type.
 */
export const readBody = (
  exchange: Exchange,
  endpoint: Endpoint,
  budget: BodyBudget,
): Effect.Effect<Json, ApiError, Scope.Scope> =>
  Effect.gen(function* () {
    const { req } = exchange
    if (endpoint.body === "none") return undefined
    if (Number(req.headers["content-length"] ?? 0) > endpoint.maxBodyBytes)
      return yield* tooLarge(endpoint.maxBodyBytes)
    if (endpoint.body === "multipart") {
      yield* requirePlainForm(req)
      return yield* readMultipart(exchange, endpoint.maxBodyBytes, () =>
        tooLarge(endpoint.maxBodyBytes),
      )
    }
    if (endpoint.body !== "bytes") yield* requireJsonType(req.headers["content-type"])
    const encoding = yield* encodingOf(req)
    const bytes = yield* read(exchange, encoding, endpoint.maxBodyBytes, budget)
    return endpoint.body === "bytes" ? bytes : yield* parseJson(bytes)
  })
