import type { IncomingMessage, ServerResponse } from "node:http"
import { randomText } from "../../core/services/ids.ts"

/** Why a request ended before its reply did. */
export type Left = "gone" | "draining"

/** One request and its reply, from the first header to the closed response. */
export interface Exchange {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly requestId: string
  /** The client left, or the server can't wait any longer. */
  left: Left | undefined
  /** Endpoint id, or the name of a route of ours: the metrics' label. */
  endpoint: string
  /** The route's pattern, never the path itself. */
  route: string
  callId: string | undefined
  errorCode: string | undefined
  /** An event stream has begun: an error can only be its last event. */
  streaming: boolean
  abort(reason: Left): void
  /** Calls when it is aborted, at once if it was. One listener and no AbortSignal, which takes longer than parsing the request. */
  onLeft(leave: () => void): void
}

/** What our middleware hands on in `ctx.state`. */
export interface State {
  exchange: Exchange
}

/** Visible ASCII without quotes, angle brackets and backslash, so that an id can stand in logs, shells and HTML as it is. */
const validRequestId = /^[A-Za-z0-9!#$%&()*+,\-./:;=?@[\]^_{|}~]{1,128}$/

/** The client's own label if it is a sane one, else a fresh one. */
export const requestIdOf = (incoming: string | readonly string[] | undefined): string =>
  typeof incoming === "string" && validRequestId.test(incoming) ? incoming : `req_${randomText(24)}`

export const makeExchange = (
  req: IncomingMessage,
  res: ServerResponse,
  requestId: string,
): Exchange => {
  let leave: (() => void) | undefined
  const exchange: Exchange = {
    req,
    res,
    requestId,
    left: undefined,
    endpoint: "(none)",
    route: "(none)",
    callId: undefined,
    errorCode: undefined,
    streaming: false,
    abort: (reason) => {
      if (exchange.left !== undefined) return
      exchange.left = reason
      leave?.()
    },
    onLeft: (listener) => {
      leave = listener
      if (exchange.left !== undefined) leave()
    },
  }
  res.once("close", () => {
    if (!res.writableFinished) exchange.abort("gone")
  })
  // a socket may break at any time; 'close' says all that there is to know
  const ignore = () => {}
  req.on("error", ignore)
  res.on("error", ignore)
  return exchange
}
