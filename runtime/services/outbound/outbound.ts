import { type LookupAddress, type LookupAllOptions, lookup } from "node:dns"
import { isIP, type LookupFunction } from "node:net"
import { Effect } from "effect"
import { Agent, request as send } from "undici"
import { type Outbound, OutboundFailed, OutboundRefused, type OutboundReply, type OutboundRequest } from "../../../core/services/outbound.ts"
import { isPublicAddress } from "./public-address.ts"

const maxUrlLength = 2048

/** `host:port` as a list of exact ones has it; IPv6 in brackets. */
const endOf = (url: URL): string => `${url.hostname}:${url.port || (url.protocol === "https:" ? 443 : 80)}`

const bareHost = (url: URL): string => url.hostname.replace(/^\[|\]$/g, "")

const parse = (text: string): URL | undefined => {
  try {
    return text.length <= maxUrlLength ? new URL(text) : undefined
  } catch {
    return undefined
  }
}

const closed = "It leads to an address that is not on the public internet."

/** Names that never lead to the public internet (RFC 6761, 6762, 8375, and what clouds call their own): refused before anybody resolves them. */
const isLocalName = (host: string): boolean => /(^|\.)(localhost|local|internal|home\.arpa)\.?$/.test(host)

const refusalOf = (text: string, allowed: ReadonlySet<string>): string | undefined => {
  const url = parse(text)
  if (!url) return `It must be an absolute URL of at most ${maxUrlLength} characters.`
  if (url.username || url.password) return "It must not hold a user name or a password."
  if (allowed.has(endOf(url)) && ["http:", "https:"].includes(url.protocol)) return undefined
  if (url.protocol !== "https:") return "It must be an https URL."
  // names are looked at when they are resolved; a URL has already turned every notation of IPv4 into the plain one
  const host = bareHost(url)
  return isLocalName(host) || (isIP(host) && !isPublicAddress(host)) ? closed : undefined
}

/** `dns.lookup`, asked for all addresses. */
export type ResolveName = (hostname: string, options: LookupAllOptions, callback: (error: NodeJS.ErrnoException | null, found: LookupAddress[]) => void) => void

class ClosedAddress extends Error {}

/** Every address of the name must be public, and only these are connected to: what a second look-up would say does not matter. */
const guardedLookup =
  (resolveName: ResolveName): LookupFunction =>
  (hostname, options, callback) =>
    resolveName(hostname, { ...options, all: true }, (error, found) => {
      if (error) return callback(error, "")
      const [first] = found
      if (!first || !found.every(({ address }) => isPublicAddress(address))) return callback(new ClosedAddress(closed), "")
      if (options.all) return callback(null, found)
      callback(null, first.address, first.family)
    })

const readUpTo = async (body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Pick<OutboundReply, "body" | "truncated">> => {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body) {
    chunks.push(chunk.subarray(0, maxBytes - bytes))
    bytes += chunk.length
    // leaving the loop destroys the connection
    if (bytes > maxBytes) break
  }
  return { body: Buffer.concat(chunks), truncated: bytes > maxBytes }
}

const plainHeaders = (headers: Record<string, string | string[] | undefined>) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : (value ?? "")]))

const reasonOf = (cause: unknown): string => {
  const { code, name } = cause as NodeJS.ErrnoException
  if (name === "TimeoutError" || code === "UND_ERR_CONNECT_TIMEOUT") return "There was no answer in time."
  return `The connection failed (${code ?? name ?? "unknown"}).`
}

const isClosedAddress = (cause: unknown): boolean => cause instanceof ClosedAddress || (cause as Error | undefined)?.cause instanceof ClosedAddress

/** `allowHosts`: exact `host:port`s that may be private, and be called over http as well; for tests and people who host both ends. */
export const makeOutbound = (allowHosts: readonly string[], resolveName: ResolveName = lookup): Outbound => {
  const allowed = new Set(allowHosts)
  const guarded = new Agent({ connect: { lookup: guardedLookup(resolveName) }, maxHeaderSize: 16_384 })
  const open = new Agent({ maxHeaderSize: 16_384 })

  const fetchOnce = async ({ method, url, headers, body, timeoutMs, maxBytes }: OutboundRequest, left: AbortSignal): Promise<OutboundReply> => {
    const signal = AbortSignal.any([left, AbortSignal.timeout(timeoutMs)])
    const dispatcher = allowed.has(endOf(new URL(url))) ? open : guarded
    // `reset`: no connection is kept, as the next request must look the name up again
    const reply = await send(url, { method, headers: headers ?? {}, body: body ?? null, signal, dispatcher, reset: true })
    return { status: reply.statusCode, headers: plainHeaders(reply.headers), ...(await readUpTo(reply.body, maxBytes)) }
  }

  return {
    refusal: (url) => refusalOf(url, allowed),
    send: (request) =>
      Effect.suspend((): Effect.Effect<OutboundReply, OutboundRefused | OutboundFailed> => {
        const refusal = refusalOf(request.url, allowed)
        if (refusal !== undefined) return Effect.fail(new OutboundRefused({ message: refusal }))
        return Effect.tryPromise({
          try: (left) => fetchOnce(request, left),
          catch: (cause) => (isClosedAddress(cause) ? new OutboundRefused({ message: closed }) : new OutboundFailed({ message: reasonOf(cause) })),
        })
      }),
  }
}
