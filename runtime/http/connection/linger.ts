import type { IncomingMessage } from "node:http"
import type { Exchange } from "../exchange.ts"

/** A rest of this size is read to the end in a moment, and the connection lives on. */
const smallBytes = 64 * 1024

const hasBody = (req: IncomingMessage) =>
  req.headers["transfer-encoding"] !== undefined || Number(req.headers["content-length"] ?? 0) > 0

/** A large or endless body that nobody will read: the connection can't be used again. */
export const leavesBodyUnread = ({ req, res }: Exchange): boolean => {
  if (req.complete || !hasBody(req)) return false
  return (
    !res.shouldKeepAlive ||
    req.headers["transfer-encoding"] !== undefined ||
    Number(req.headers["content-length"]) > smallBytes
  )
}

/**
 * Closing a socket with unread bytes in it sends a reset, which can destroy an answer that the client has not read yet (RFC 9112, section 9.6).
 * So the rest of the body is thrown away for a while before the response ends. Its bytes are all out by then: the length was announced.
 */
export const endAfterRest = ({ req, res }: Exchange, lingerMs: number): void => {
  const timer = setTimeout(finish, lingerMs)
  function finish() {
    clearTimeout(timer)
    res.end()
  }
  req.once("end", finish)
  req.once("close", finish)
  req.resume()
}
