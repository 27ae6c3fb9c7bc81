import { Effect } from "effect"
import {
  type Outbound,
  OutboundFailed,
  OutboundRefused,
  type OutboundReply,
  type OutboundRequest,
} from "../../../core/services/outbound.ts"
import { allowedHostPorts, hostPortOf, notPublic, refusalOf } from "./refusal.ts"
import { guardedLookup, makeResolveName, PrivateAddress, type ResolveName } from "./resolve-name.ts"

const readUpTo = async (
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<Pick<OutboundReply, "body" | "truncated">> => {
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
  Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [
      name,
      Array.isArray(value) ? value.join(", ") : (value ?? ""),
    ]),
  )

const timedOut = new OutboundFailed({ message: "There was no answer in time." })

const failureOf = (cause: unknown): OutboundRefused | OutboundFailed => {
  if (cause instanceof PrivateAddress) return new OutboundRefused({ message: notPublic })
  const { code, name } = cause as NodeJS.ErrnoException
  if (code === "UND_ERR_CONNECT_TIMEOUT" || code === "ETIMEOUT") return timedOut
  return new OutboundFailed({ message: `The connection failed (${code ?? name ?? "unknown"}).` })
}

/** Loaded for the first request, as it takes a tenth of a server's start. */
const loadClient = async (resolve: ResolveName) => {
  const { Agent, request } = await import("undici")
  const maxHeaderSize = 16_384
  return {
    send: request,
    guarded: new Agent({ connect: { lookup: guardedLookup(resolve) }, maxHeaderSize }),
    open: new Agent({ maxHeaderSize }),
  }
}

/**
 * `allowHosts`: exact `host:port`s that may be private and be called over http, for tests and
 * private receivers. `allowPorts`: ports of public hosts beside 443 and 80.
 */
export const makeOutbound = (
  allowHosts: readonly string[],
  resolve: ResolveName = makeResolveName(),
  allowPorts: readonly string[] = [],
): Outbound => {
  const rules = { hosts: allowedHostPorts(allowHosts), ports: new Set(allowPorts) }
  let client: ReturnType<typeof loadClient> | undefined

  const fetchOnce = async (
    { method, url, headers, body, maxBytes }: OutboundRequest,
    signal: AbortSignal,
  ): Promise<OutboundReply> => {
    client ??= loadClient(resolve)
    const { send, guarded, open } = await client
    const dispatcher = rules.hosts.has(hostPortOf(new URL(url))) ? open : guarded
    // `reset`: connections are not reused, as each request must resolve the name again
    const reply = await send(url, {
      method,
      headers: headers ?? {},
      body: body ?? null,
      signal,
      dispatcher,
      reset: true,
    })
    return {
      status: reply.statusCode,
      headers: plainHeaders(reply.headers),
      ...(await readUpTo(reply.body, maxBytes)),
    }
  }

  return {
    refusal: (url) => refusalOf(url, rules),
    send: (request) =>
      Effect.suspend((): Effect.Effect<OutboundReply, OutboundRefused | OutboundFailed> => {
        const refusal = refusalOf(request.url, rules)
        if (refusal !== undefined) return Effect.fail(new OutboundRefused({ message: refusal }))
        // not `AbortSignal.timeout` within `AbortSignal.any`: it can be garbage collected, and the
        // call would never end
        return Effect.tryPromise({
          try: (signal) => fetchOnce(request, signal),
          catch: failureOf,
        }).pipe(
          Effect.timeoutOrElse({
            duration: request.timeoutMs,
            orElse: () => Effect.fail(timedOut),
          }),
        )
      }),
  }
}
