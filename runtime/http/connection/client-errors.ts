import type { Server } from "node:http"
import type { Socket } from "node:net"
import type { Duplex } from "node:stream"
import { apiError, type ErrorCode, statusOf } from "../../../core/errors.ts"
import type { Log } from "../../../core/services/log.ts"
import { envelope } from "../errors.ts"
import { requestIdOf } from "../exchange.ts"
import type { InFlight } from "./in-flight.ts"

const reasons: Readonly<Record<number, string>> = {
  400: "Bad Request",
  405: "Method Not Allowed",
  408: "Request Timeout",
  413: "Payload Too Large",
  431: "Request Header Fields Too Large",
}

const codeOf = (code: string | undefined): ErrorCode => {
  if (code === "HPE_HEADER_OVERFLOW") return "headers_too_large"
  if (code === "HPE_CHUNK_EXTENSIONS_OVERFLOW") return "payload_too_large"
  return code === "ERR_HTTP_REQUEST_TIMEOUT" ? "request_timeout" : "invalid_http"
}

/** A client that asked for the head alone would read a body as the next reply. */
const asksForHead = (packet: Buffer | undefined): boolean =>
  packet?.subarray(0, "HEAD ".length).toString("latin1") === "HEAD "

const rawReply = (code: ErrorCode, requestId: string, isHead: boolean): string => {
  const error = apiError(code)
  const body = JSON.stringify(envelope(error, requestId))
  const head = [
    `HTTP/1.1 ${statusOf(error)} ${reasons[statusOf(error)] ?? ""}`,
    "Content-Type: application/json; charset=utf-8",
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-ID: ${requestId}`,
    "X-Content-Type-Options: nosniff",
    "Connection: close",
  ]
  return `${head.join("\r\n")}\r\n\r\n${isHead ? "" : body}`
}

/** Closes later, as the client may still be sending: see linger.ts. */
const closeSoon = (socket: Duplex, lingerMs: number) => {
  const timer = setTimeout(() => socket.destroy(), lingerMs)
  socket.once("close", () => clearTimeout(timer))
}

/**
 * Replies to what Node's parser refuses: no handler sees it. At most one reply a connection, and
 * none inside of another reply.
 */
export const answerClientErrors = (
  server: Server,
  inFlight: InFlight,
  log: Log,
  lingerMs: number,
): void => {
  const answered = new WeakSet<Duplex>()
  const refuse = (socket: Duplex, code: ErrorCode, packet?: Buffer) => {
    if (answered.has(socket)) return
    answered.add(socket)
    const [first] = inFlight.owedBy(socket as Socket)
    if (!socket.writable || first?.res.headersSent) return void socket.destroy()
    const requestId = first?.requestId ?? requestIdOf(undefined)
    if (first) first.errorCode = code
    log.info("http.client_error", "broken http", { request_id: requestId, code })
    socket.end(rawReply(code, requestId, asksForHead(packet)))
    closeSoon(socket, lingerMs)
  }
  server.on("clientError", (error: NodeJS.ErrnoException & { rawPacket?: Buffer }, socket) => {
    if (error.code === "ECONNRESET" || error.code === "EPIPE") return void socket.destroy()
    refuse(socket, codeOf(error.code), error.rawPacket)
  })
  server.on("connect", (_request, socket) => {
    socket.on("error", () => {})
    refuse(socket, "method_not_allowed")
  })
}
