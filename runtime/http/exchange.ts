import type { IncomingMessage, ServerResponse } from "node:http"

/** Why a request ended before its reply did. */
export type Left = "gone" | "draining"

/** One request and its reply, from the first header to the closed response. */
export interface Exchange {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly requestId: string
  /** Aborted when the client left or the server can't wait any longer; its `reason` is a `Left`. */
  readonly left: AbortSignal
  /** Endpoint id, or the name of a route of ours: the metrics' label. */
  endpoint: string
  /** The route's pattern, never the path itself. */
  route: string
  callId: string | undefined
  errorCode: string | undefined
  /** An event stream has begun: an error can only be its last event. */
  streaming: boolean
  abort(reason: Left): void
}

/** What our middleware hands on in `ctx.state`. */
export interface State {
  exchange: Exchange
}

export const makeExchange = (req: IncomingMessage, res: ServerResponse, requestId: string): Exchange => {
  const controller = new AbortController()
  const abort = (reason: Left) => controller.abort(reason)
  res.once("close", () => {
    if (!res.writableFinished) abort("gone")
  })
  // a socket may break at any time; 'close' says all that there is to know
  const ignore = () => {}
  req.on("error", ignore)
  res.on("error", ignore)
  return { req, res, requestId, left: controller.signal, endpoint: "(none)", route: "(none)", callId: undefined, errorCode: undefined, streaming: false, abort }
}
