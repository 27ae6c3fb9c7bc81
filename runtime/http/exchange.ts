import type { IncomingMessage, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import type { Meter } from "../../core/call/meter.ts"
import type { Caller } from "../../core/caller.ts"
import type { Micros } from "../../core/money.ts"
import { randomText } from "../../core/services/ids.ts"
import type { ModelEntry } from "../../core/services/model-entry.ts"
import type { Cohorts } from "../services/cohorts.ts"

/** Why a request was aborted before its reply was complete. */
export type AbortReason = "gone" | "draining"

/** What is known of a call, as it becomes known: for the log, the metrics and the trace. */
export interface CallRecord {
  readonly meter: Meter
  caller?: Caller | undefined
  /** The model that the body names, if the catalogue has it. */
  model?: ModelEntry | undefined
  cost?: (() => Micros | undefined) | undefined
}

/** One request and its reply, from the first header to the closed response. */
export interface Exchange {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly requestId: string
  /** Without the query; percent-encoded, as it came. */
  readonly path: string
  /** The query without its `?`. */
  readonly query: string
  /** Set once the client has disconnected or a drain has timed out. */
  abortReason: AbortReason | undefined
  /** The endpoint's id or the system route's name: a label of the metrics. */
  endpoint: string
  /** The route's pattern, never the path itself, which may hold ids. */
  route: string
  callId: string | undefined
  call: CallRecord | undefined
  /** A page, or a file of one: its log line is of no interest. */
  isAsset: boolean
  /** A stream of events that happen elsewhere: nothing is lost when it ends early. */
  isWatch: boolean
  errorCode: string | undefined
  /** An event stream has begun: an error can only be sent as its last event. */
  streaming: boolean
  /** Its reply is whole: nothing more can be sent. */
  isAnswered: boolean
  /** The page that sent it is of an origin whose live keys are refused: see response/cors.ts. */
  testKeysOnly: boolean
  abort(reason: AbortReason): void
  /** Ends the reply, whose head is written, with this text, together with the replies of others. */
  answer(text: string): void
  /**
   * Calls the listener on an abort, at once if it has happened. One listener only: an AbortSignal
   * costs more than parsing a request.
   */
  onAbort(listener: () => void): void
  /** Calls the listener when the response is closed, whole or not. */
  onClose(listener: () => void): void
}

/** Visible ASCII without quotes, angle brackets and backslash: safe in logs, shells and HTML. */
const validRequestId = /^[A-Za-z0-9!#$%&()*+,\-./:;=?@[\]^_{|}~]{1,128}$/

/** The client's own id if it is valid, else a new one. */
export const requestIdOf = (incoming: string | readonly string[] | undefined): string =>
  typeof incoming === "string" && validRequestId.test(incoming) ? incoming : `req_${randomText(24)}`

/** A proxy may send the whole address (RFC 9112, section 3.2.2). */
const originOf = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i

/** Path and query of a request's target. */
const targetOf = (url: string): readonly [path: string, query: string] => {
  const local = url.startsWith("/") ? url : url.replace(originOf, "") || "/"
  const hash = local.indexOf("#")
  const target = hash < 0 ? local : local.slice(0, hash)
  const mark = target.indexOf("?")
  return mark < 0 ? [target, ""] : [target.slice(0, mark), target.slice(mark + 1)]
}

// a socket may fail at any time; 'close' follows, and is handled
const ignore = () => {}

/**
 * A reply that waits for those of earlier requests has no socket yet. Where its turn never comes,
 * Node does not close it.
 */
const closeWithConnection = (socket: Socket, res: ServerResponse): void => {
  const close = () => {
    if (res.socket === null) res.destroy().emit("close")
  }
  // as many as the client sends at once
  socket.setMaxListeners(0).once("close", close)
  res.once("close", () => socket.off("close", close))
}

export const makeExchange = (
  req: IncomingMessage,
  res: ServerResponse,
  requestId: string,
  cohorts: Cohorts,
): Exchange => {
  let onAbort: (() => void) | undefined
  const onClose: (() => void)[] = []
  const [path, query] = targetOf(req.url ?? "/")
  const exchange: Exchange = {
    req,
    res,
    requestId,
    path,
    query,
    abortReason: undefined,
    endpoint: "(none)",
    route: "(none)",
    callId: undefined,
    call: undefined,
    isAsset: false,
    isWatch: false,
    errorCode: undefined,
    streaming: false,
    isAnswered: false,
    testKeysOnly: false,
    abort: (reason) => {
      if (exchange.abortReason !== undefined) return
      exchange.abortReason = reason
      onAbort?.()
    },
    answer: (text) => {
      exchange.isAnswered = true
      cohorts.go(() => void res.end(text))
    },
    onAbort: (listener) => {
      onAbort = listener
      if (exchange.abortReason !== undefined) listener()
    },
    onClose: (listener) => void onClose.push(listener),
  }
  res.once("close", () => {
    if (!res.writableFinished) exchange.abort("gone")
    for (const listener of onClose) listener()
  })
  // Node discards the rest of a body only where nothing of it was read
  res.once("finish", () => {
    if (!req.complete) req.resume()
  })
  if (res.socket === null) closeWithConnection(req.socket, res)
  req.on("error", ignore)
  res.on("error", ignore)
  return exchange
}
