import { Cause, Option } from "effect"
import {
  type ApiError,
  apiError,
  errorBody,
  isApiError,
  type PortError,
  portFailure,
} from "../../core/errors.ts"
import type { Log } from "../../core/services/log.ts"
import type { Exchange } from "./exchange.ts"

export const envelope = (error: ApiError, requestId: string) => ({
  error: errorBody(error),
  request_id: requestId,
})

export const stopping = (): ApiError =>
  apiError("server_starting", "The server is stopping; send the request again.", {
    retryAfterMs: 1_000,
  })

/** Returns a typed error as it is; anything else is logged and hidden behind `internal_error`. */
export const toApiError = (
  cause: Cause.Cause<ApiError | PortError>,
  exchange: Exchange,
  log: Log,
): ApiError => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (isApiError(error)) return error
  if (exchange.abortReason === "draining") return stopping()
  if (error?.why === "busy") return portFailure(error)
  const fields = {
    request_id: exchange.requestId,
    endpoint: exchange.endpoint,
    call_id: exchange.callId,
  }
  if (error)
    log.error("request.port_failed", "a port failed", {
      ...fields,
      port: error.port,
      reason: error.message,
      cause: String(error.cause ?? ""),
    })
  else log.error("request.failed", "a request failed", { ...fields, cause: Cause.pretty(cause) })
  return error ? portFailure(error) : apiError("internal_error")
}
