import type { IncomingMessage } from "node:http"
import type { Readable } from "node:stream"
import { Busboy, type BusboyInstance } from "@fastify/busboy"
import { Effect, Stream } from "effect"
import { type ApiError, apiError, isApiError } from "../../../core/errors.ts"
import type { BodyPart, MultipartBody } from "../../../core/ports/endpoint.ts"
import { readyForBody } from "../connection/expect-continue.ts"
import type { Exchange } from "../exchange.ts"
import type { Turns } from "./turns.ts"

/** What the parser of a form may hold. */
export const formBytes = 2 ** 20

const limits = { fieldSize: 64 * 1024, fields: 32, files: 16, parts: 48, headerPairs: 20 }

const broken = (why: string) =>
  apiError("invalid_request_error", `The multipart body can't be read: ${why}.`)
const asApiError = (cause: unknown): ApiError =>
  isApiError(cause) ? cause : broken("it is cut or malformed")

const bytesOf = (file: Readable): Stream.Stream<Uint8Array, ApiError> =>
  Stream.fromAsyncIterable(file as AsyncIterable<Uint8Array>, asApiError)

/**
 * Parts that are parsed and not taken yet. The parser stops at a file until it is read, so the
 * queue stays short.
 */
class PartQueue {
  private readonly parts: BodyPart[] = []
  private ended = false
  private failure: ApiError | undefined
  private wake: () => void = () => {}
  /** The file that is being read. */
  private open: Readable | undefined

  opens(file: Readable): void {
    this.open = file
  }
  add(part: BodyPart): void {
    this.parts.push(part)
    this.wake()
  }
  end(failure?: ApiError): void {
    this.failure ??= failure
    this.ended = true
    // otherwise its reader would wait for ever
    if (failure) this.open?.destroy(failure)
    this.wake()
  }
  async *[Symbol.asyncIterator](): AsyncGenerator<BodyPart> {
    for (;;) {
      const part = this.parts.shift()
      if (part) yield part
      else if (this.failure) throw this.failure
      else if (this.ended) return
      else
        await new Promise<void>((resolve) => {
          this.wake = resolve
        })
    }
  }
}

const parserOf = (req: IncomingMessage, found: PartQueue): BusboyInstance => {
  const parser = new Busboy({
    headers: { ...req.headers, "content-type": req.headers["content-type"] ?? "" },
    limits,
  })
  parser.on("field", (name, value, _nameTruncated, valueTruncated) => {
    if (name === undefined) return found.end(broken("a part has no name"))
    if (valueTruncated)
      return found.end(
        apiError(
          "invalid_request_error",
          `${name}: the field is longer than ${limits.fieldSize} bytes.`,
          { param: name },
        ),
      )
    found.add({ kind: "field", name, value })
  })
  parser.on("file", (name, file, filename, _encoding, mediaType) => {
    // a reader sees the error; without one an unhandled 'error' event would end the process
    file.on("error", () => {})
    if (name === undefined) return found.end(broken("a part has no name"))
    found.opens(file)
    found.add({ kind: "file", name, filename: filename ?? "", mediaType, bytes: bytesOf(file) })
  })
  for (const limit of ["fieldsLimit", "filesLimit", "partsLimit"] as const)
    parser.on(limit, () => found.end(broken("it has too many parts")))
  parser.on("error", (cause) => found.end(asApiError(cause)))
  parser.on("finish", () => found.end())
  return parser
}

/** Feeds the parser as fast as the parts are read, up to `maxBytes`. */
const pump = (
  req: IncomingMessage,
  parser: BusboyInstance,
  found: PartQueue,
  maxBytes: number,
  tooLarge: () => ApiError,
  turns: Turns,
) => {
  let bytes = 0
  let cancel = () => {}
  const stop = () => {
    cancel()
    req.off("data", onData).off("end", onEnd)
    req.pause()
  }
  let isEnd = false
  let isWaiting = false
  const write = (chunk: Buffer) => {
    isWaiting = false
    const takesMore = parser.write(chunk)
    if (isEnd) parser.end()
    else if (takesMore) req.resume()
    else parser.once("drain", () => req.resume())
  }
  const onData = (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > maxBytes) {
      stop()
      const error = tooLarge()
      found.end(error)
      return void parser.destroy(error)
    }
    req.pause()
    isWaiting = true
    cancel = turns.add(() => write(chunk))
  }
  // it may come while the last bytes still wait for their turn
  const onEnd = () => {
    isEnd = true
    if (!isWaiting) parser.end()
  }
  req.on("data", onData).on("end", onEnd)
  return stop
}

/**
 * The parts of a `multipart/form-data` body (RFC 7578), read as they come and with backpressure.
 */
export const readMultipart = (
  exchange: Exchange,
  maxBytes: number,
  tooLarge: () => ApiError,
  turns: Turns,
): Effect.Effect<MultipartBody, ApiError> =>
  Effect.suspend(() => {
    const { req } = exchange
    const boundary = /^multipart\/form-data\b.*;\s*boundary=("[^"]{1,70}"|[^\s;,"]{1,70})\s*(;|$)/i
    if (!boundary.test(req.headers["content-type"] ?? ""))
      return Effect.fail(
        apiError(
          "unsupported_media_type",
          "The body must be multipart/form-data with a boundary.",
          { headers: { "accept-post": "multipart/form-data" } },
        ),
      )
    const length = Number(req.headers["content-length"] ?? Number.NaN)
    const parts = Stream.unwrap(
      Effect.sync(() => {
        const found = new PartQueue()
        const parser = parserOf(req, found)
        readyForBody(exchange)
        const stop = pump(req, parser, found, maxBytes, tooLarge, turns)
        return Stream.fromAsyncIterable(found, asApiError).pipe(
          Stream.ensuring(
            Effect.sync(() => {
              stop()
              parser.removeAllListeners()
              parser.on("error", () => {})
              parser.destroy()
            }),
          ),
        )
      }),
    )
    return Effect.succeed({ parts, contentLength: Number.isNaN(length) ? undefined : length })
  })
