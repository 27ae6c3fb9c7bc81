import { readFileSync } from "node:fs"
import { pipeline } from "node:stream"
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib"
import { Effect, Redacted, type Scope } from "effect"
import { Agent, type Dispatcher, FormData, request as send } from "undici"
import type { Json } from "../../../core/json.ts"
import type { UpstreamOptions } from "../options.ts"
import { connectionFailure, failure, type UpstreamFailure } from "./failure.ts"
import { statusFailure } from "./status-failure.ts"

/** The head of an answer with status 200, and its body, decompressed. */
export interface UpstreamReply {
  readonly contentType: string
  readonly headers: Dispatcher.ResponseData["headers"]
  readonly body: AsyncIterable<Uint8Array>
}

/** Connections to one upstream. Redirects are not followed: the key goes to no other address. */
export interface Connection {
  readonly host: string
  /**
   * `path` begins with `v1/`, or is below the server's root; without a body it is a GET. The end of the Scope hangs up, which
   * makes the server stop its work.
   */
  call(
    path: string,
    body: Json | FormData | undefined,
    timeoutMs: number,
  ): Effect.Effect<UpstreamReply, UpstreamFailure, Scope.Scope>
}

/** `http://host` and `http://host/v1` have the same routes. */
export const addressOf = (url: string, path: string): string => {
  const trimmed = url.replace(/\/+$/, "")
  const base = new URL(trimmed).pathname === "/" ? `${trimmed}/v1` : trimmed
  return path.startsWith("v1/")
    ? `${base}${path.slice(2)}`
    : `${base.replace(/\/v\d+$/, "")}/${path}`
}

const decoders: Readonly<Record<string, () => NodeJS.ReadWriteStream & AsyncIterable<Uint8Array>>> =
  { gzip: createGunzip, "x-gzip": createGunzip, deflate: createInflate, br: createBrotliDecompress }

/** Plain bytes are asked for, and a proxy may compress all the same. */
const decompressed = (
  headers: Dispatcher.ResponseData["headers"],
  body: Dispatcher.ResponseData["body"],
): AsyncIterable<Uint8Array> => {
  const coding = String(headers["content-encoding"] ?? "identity").toLowerCase()
  if (coding === "identity") return body
  const decoder = decoders[coding]?.()
  if (!decoder) throw failure("garbled", `its body is compressed in an unknown way (${coding})`)
  // what fails is thrown where the decoder is read
  pipeline(body, decoder, () => {})
  return decoder
}

const first = (value: string | string[] | undefined): string =>
  (Array.isArray(value) ? value[0] : value) ?? ""

const makeAgent = ({ caFile }: UpstreamOptions, connectTimeoutMs: number): Agent =>
  new Agent({
    connect: {
      timeout: connectTimeoutMs,
      ...(caFile !== undefined && { ca: readFileSync(caFile, "utf8") }),
    },
    connections: 1_024,
    maxHeaderSize: 16_384,
    // events and deadlines are timed by who reads them
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: 4_000,
  })

/** Fails where `caFile` can't be read. The connections close with the Scope. */
export const openConnection = (
  options: UpstreamOptions,
  connectTimeoutMs: number,
): Effect.Effect<Connection, UpstreamFailure, Scope.Scope> =>
  Effect.gen(function* () {
    const agent = yield* Effect.acquireRelease(
      Effect.try({
        try: () => makeAgent(options, connectTimeoutMs),
        catch: () => failure("misplaced", `caFile ${options.caFile} can't be read`),
      }),
      (opened) => Effect.promise(() => opened.destroy()),
    )
    const key = options.key === undefined ? "" : Redacted.value(options.key)
    const request = async (
      path: string,
      body: Json | FormData | undefined,
      signal: AbortSignal,
    ): Promise<UpstreamReply> => {
      const isForm = body instanceof FormData
      const reply = await send(addressOf(options.url, path), {
        dispatcher: agent,
        signal,
        method: body === undefined ? "GET" : "POST",
        headers: {
          accept: "application/json, text/event-stream",
          "accept-encoding": "identity",
          ...(key !== "" && { authorization: `Bearer ${key}` }),
          ...(body !== undefined && !isForm && { "content-type": "application/json" }),
        },
        body: isForm ? body : body === undefined ? null : JSON.stringify(body),
      })
      // a body that nobody reads to its end fails when it is hung up
      reply.body.on("error", () => {})
      const bytes = decompressed(reply.headers, reply.body)
      if (reply.statusCode !== 200)
        throw await statusFailure(reply.statusCode, reply.headers, bytes, key)
      return {
        contentType: first(reply.headers["content-type"]),
        headers: reply.headers,
        body: bytes,
      }
    }
    const call = (path: string, body: Json | FormData | undefined, timeoutMs: number) =>
      Effect.gen(function* () {
        const hangUp = yield* Effect.acquireRelease(
          Effect.sync(() => new AbortController()),
          (controller) => Effect.sync(() => controller.abort()),
        )
        return yield* Effect.tryPromise({
          try: () => request(path, body, hangUp.signal),
          catch: (cause) => connectionFailure(cause),
        }).pipe(
          Effect.timeoutOrElse({
            duration: Math.max(0, timeoutMs),
            orElse: () => Effect.fail(failure("slow", `no answer within ${timeoutMs} ms`)),
          }),
        )
      })
    return { host: new URL(options.url).host, call }
  })
