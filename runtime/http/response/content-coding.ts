import { promisify } from "node:util"
import { brotliCompress, constants, gzip } from "node:zlib"
import { Effect, Stream } from "effect"
import type { Reply } from "../../../core/ports/endpoint.ts"
import type { Exchange } from "../exchange.ts"

type Coding = "br" | "gzip"
type BytesReply = Extract<Reply, { readonly mediaType: string }>

// the highest levels take a second for the API document and save a twentieth
const brotliLevel = { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }
const pack: Readonly<Record<Coding, (bytes: Uint8Array) => Promise<Uint8Array>>> = {
  br: (bytes) => promisify(brotliCompress)(bytes, brotliLevel),
  gzip: (bytes) => promisify(gzip)(bytes),
}

/** Below this the head of a packet is most of what is sent. */
const minBytes = 1_024

/** Whether the bytes are packed already: images, fonts, archives. */
const isText = (mediaType: string) => /^(text\/|application\/json|image\/svg)/.test(mediaType)

const weightOf = (parameters: readonly string[]): number => {
  const q = parameters.map((p) => /^\s*q=([\d.]+)\s*$/i.exec(p)?.[1]).find((text) => text)
  return q === undefined ? 1 : Number(q)
}

/** The coding to send (RFC 9110, 12.5.3): brotli before gzip where the client has no preference. */
export const codingFor = (accepted: string | undefined): Coding | undefined => {
  const weights = new Map(
    (accepted ?? "").split(",").map((entry) => {
      const [name = "", ...parameters] = entry.split(";")
      return [name.trim().toLowerCase(), weightOf(parameters)] as const
    }),
  )
  const weight = (coding: Coding) => weights.get(coding) ?? weights.get("*") ?? 0
  const coding = weight("gzip") > weight("br") ? "gzip" : "br"
  return weight(coding) > 0 ? coding : undefined
}

/** By the bytes' identity: they live as long as the plugin's own copy, and each is packed once. */
const copies = new WeakMap<Uint8Array, Map<Coding, Promise<Uint8Array>>>()

const copyOf = (bytes: Uint8Array, coding: Coding): Promise<Uint8Array> => {
  const kept = copies.get(bytes) ?? new Map<Coding, Promise<Uint8Array>>()
  copies.set(bytes, kept)
  const copy = kept.get(coding) ?? pack[coding](bytes)
  kept.set(coding, copy)
  return copy
}

/** Each coding is a representation of its own, so it has an ETag of its own (RFC 9110, 8.8.3.3). */
const tagOf = (etag: string | undefined, coding: Coding) =>
  etag === undefined ? {} : { etag: etag.replace(/"$/, `-${coding}"`) }

/**
 * The reply in the coding that the client accepts. Only `shared` bytes are compressed: a length that
 * depends on a secret beside a client's own text would give the secret away (BREACH).
 */
export const encoded = ({ req, res }: Exchange, reply: BytesReply): Effect.Effect<BytesReply> => {
  const { shared, mediaType } = reply
  if (!shared || reply.status !== 200) return Effect.succeed(reply)
  const whole = (bytes: Uint8Array, headers: object) => ({
    ...reply,
    headers: { ...reply.headers, ...headers, "content-length": String(bytes.length) },
    bytes: Stream.succeed(bytes),
  })
  if (shared.length < minBytes || !isText(mediaType)) return Effect.succeed(whole(shared, {}))
  res.appendHeader("Vary", "Accept-Encoding")
  const coding = codingFor(req.headers["accept-encoding"])
  if (!coding) return Effect.succeed(whole(shared, {}))
  return Effect.map(
    Effect.promise(() => copyOf(shared, coding)),
    (copy) => whole(copy, { "content-encoding": coding, ...tagOf(reply.headers?.etag, coding) }),
  )
}
