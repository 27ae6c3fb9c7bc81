import { urlOf } from "../../../../core/url.ts"
import type { PullContext } from "../context.ts"
import { networkFailure, SourceFailed, shownUrl, statusFailure } from "../failure.ts"
import { decodePercent } from "../safe-path.ts"
import { withRetries } from "./retry.ts"

export interface WebRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
}

export interface WebReply {
  readonly response: Response
  /** Where redirects led to: whose status it is. */
  readonly url: string
  /** Leaving the loop early ends the connection. Fails when nothing arrived for `stallMs`. */
  readonly chunks: AsyncIterable<Uint8Array>
  close(): void
}

const maxRedirects = 10
const maxDocumentBytes = 128 * 1024 * 1024

/** Moves user and password into a header: `fetch` refuses them in a URL. */
const withoutCredentials = (address: string): { url: URL; authorization: string | undefined } => {
  const url = new URL(address)
  const { username, password } = url
  url.username = ""
  url.password = ""
  if (username === "" && password === "") return { url, authorization: undefined }
  return {
    url,
    authorization: `Basic ${Buffer.from(`${decodePercent(username)}:${decodePercent(password)}`).toString("base64")}`,
  }
}

/** Aborts with a `SourceFailed` when `touch` was not called for `stallMs`. */
const makeStallWatch = (stallMs: number) => {
  const controller = new AbortController()
  const stop = () =>
    controller.abort(
      new SourceFailed(`no bytes for ${Math.round(stallMs / 100) / 10} s`, { retry: true }),
    )
  let timer = setTimeout(stop, stallMs)
  const touch = () => {
    clearTimeout(timer)
    timer = setTimeout(stop, stallMs)
  }
  return { signal: controller.signal, touch, end: () => clearTimeout(timer) }
}

const redirectTarget = (response: Response, from: URL): URL | undefined => {
  const location = response.headers.get("location")
  if (![301, 302, 303, 307, 308].includes(response.status) || location === null) return undefined
  const to = urlOf(location, from.href)
  if (!to) throw new SourceFailed(`${shownUrl(from.href)} redirects to a broken address`)
  const allowed = to.protocol === "https:" || (to.protocol === "http:" && from.protocol === "http:")
  if (!allowed)
    throw new SourceFailed(
      `${shownUrl(from.href)} redirects from ${from.protocol} to ${to.protocol}`,
    )
  return to
}

/** The address without credentials, and the headers, which have them. */
const firstHop = ({ url: address, headers }: WebRequest) => {
  const { url, authorization } = withoutCredentials(address)
  const all: Record<string, string> = {
    "accept-encoding": "identity",
    "user-agent": "rakit",
    ...(authorization && { authorization }),
    ...headers,
  }
  return { url, headers: all }
}

/** `entered` gets the address of each request before it is sent. */
const follow = async (
  context: PullContext,
  request: WebRequest,
  signal: AbortSignal,
  entered: (url: string) => void,
): Promise<Response> => {
  let { url, headers } = firstHop(request)
  for (let hop = 0; hop <= maxRedirects; hop += 1) {
    entered(url.href)
    const response = await context.fetch(url.href, { headers, redirect: "manual", signal })
    const target = redirectTarget(response, url)
    if (target === undefined) return response
    await response.body?.cancel()
    const next = withoutCredentials(target.href)
    if (next.url.origin !== url.origin) {
      const { authorization: _, ...rest } = headers
      headers = { ...rest, ...(next.authorization && { authorization: next.authorization }) }
    }
    url = next.url
  }
  throw new SourceFailed(`${shownUrl(request.url)} redirects more than ${maxRedirects} times`)
}

/**
 * One GET. Follows redirects, but never sends an `authorization` header to another host. Any status
 * is a reply.
 */
export const openWeb = async (
  context: PullContext,
  request: WebRequest,
  outer: AbortSignal,
): Promise<WebReply> => {
  const watch = makeStallWatch(context.timing.stallMs)
  const closing = new AbortController()
  const signal = AbortSignal.any([outer, watch.signal, closing.signal])
  // a firewall may allow the hub, and not the host that it redirects to
  let at = request.url
  const failure = (error: unknown): unknown => {
    watch.end()
    return outer.aborted
      ? outer.reason
      : networkFailure(watch.signal.aborted ? watch.signal.reason : error, at)
  }
  const read = async function* (response: Response): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of response.body ?? []) {
        watch.end() // a slow reader must not count as a stall
        yield chunk
        watch.touch()
      }
    } catch (error) {
      throw failure(error)
    } finally {
      watch.end()
    }
  }
  const close = () => {
    watch.end()
    closing.abort()
  }
  try {
    const response = await follow(context, request, signal, (url) => {
      at = url
    })
    watch.touch()
    return { response, url: at, chunks: read(response), close }
  } catch (error) {
    throw failure(error)
  }
}

export interface WebHead {
  readonly status: number
  readonly headers: Headers
}

const headOf = async (
  context: PullContext,
  request: WebRequest,
  method: "HEAD" | "GET",
  signal: AbortSignal,
): Promise<WebHead> => {
  const { url: address, headers } = firstHop(request)
  let url = address
  const said = new Headers()
  for (let hop = 0; hop <= maxRedirects; hop += 1) {
    const response = await context.fetch(url.href, { method, headers, redirect: "manual", signal })
    await response.body?.cancel()
    for (const [name, value] of response.headers) if (!said.has(name)) said.append(name, value)
    const target = redirectTarget(response, url)
    if (target === undefined || target.origin !== url.origin)
      return { status: response.status, headers: said }
    url = withoutCredentials(target.href).url
  }
  throw new SourceFailed(`${shownUrl(request.url)} redirects more than ${maxRedirects} times`)
}

/**
 * What a server says of a file without sending it. Redirects within the host are followed and their
 * headers count, too; one to another host is the answer.
 */
export const readHead = (
  context: PullContext,
  request: WebRequest,
  outer: AbortSignal,
): Promise<WebHead> =>
  withRetries(
    async () => {
      const watch = makeStallWatch(context.timing.stallMs)
      const signal = AbortSignal.any([outer, watch.signal])
      try {
        const head = await headOf(context, request, "HEAD", signal)
        const isKnown = head.status !== 405 && head.status !== 501
        const found = isKnown ? head : await headOf(context, request, "GET", signal)
        if (found.status === 429 || found.status >= 500) throw statusFailure(found, request.url)
        return found
      } catch (error) {
        if (outer.aborted) throw outer.reason
        throw networkFailure(watch.signal.aborted ? watch.signal.reason : error, request.url)
      } finally {
        watch.end()
      }
    },
    { backoffMs: context.timing.backoffMs, signal: outer },
  )

export interface WebDocument {
  readonly text: string
  readonly headers: Headers
  /** 200, or one of those allowed. */
  readonly status: number
}

/**
 * Reads a small document (an index, a listing), with retries. Statuses other than 200 and `allowed`
 * fail.
 */
export const readDocument = (
  context: PullContext,
  request: WebRequest,
  signal: AbortSignal,
  allowed: readonly number[] = [],
): Promise<WebDocument> =>
  withRetries(
    async () => {
      const reply = await openWeb(context, request, signal)
      try {
        const { status, headers } = reply.response
        if (status !== 200 && !allowed.includes(status))
          throw statusFailure(reply.response, reply.url)
        const parts: Uint8Array[] = []
        let bytes = 0
        for await (const chunk of reply.chunks) {
          bytes += chunk.length
          if (bytes > maxDocumentBytes)
            throw new SourceFailed(`${shownUrl(request.url)} is too long for an index`)
          parts.push(chunk)
        }
        return { text: Buffer.concat(parts).toString("utf8"), headers, status }
      } finally {
        reply.close()
      }
    },
    { backoffMs: context.timing.backoffMs, signal },
  )

export const parseJson = (text: string, url: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    throw new SourceFailed(`${shownUrl(url)} did not answer with JSON`)
  }
}
