import { type ApiError, errorHeaders, statusOf } from "../../../core/errors.ts"
import { envelope } from "../errors.ts"
import type { Exchange } from "../exchange.ts"
import { sendJson } from "./reply.ts"
import { frame } from "./sse.ts"

/**
 * The reply of a failed request: an envelope with its status, or, where a stream has begun, its
 * last event.
 */
export const sendError = (exchange: Exchange, error: ApiError, lingerMs: number): void => {
  const { res, requestId } = exchange
  if (res.destroyed || res.writableEnded || exchange.isAnswered) return
  exchange.errorCode = error.code
  exchange.callId ??= error.headers?.["x-call-id"]
  // a failure that names no cost leaves open whether the money moved
  if (exchange.call && error.headers?.["x-cost-idr"] === "0") exchange.call.cost ??= () => 0n
  if (exchange.streaming) res.end(frame(envelope(error, requestId)))
  else if (res.headersSent) res.destroy()
  else
    sendJson(
      exchange,
      { status: statusOf(error), headers: errorHeaders(error), json: envelope(error, requestId) },
      lingerMs,
    )
}
