import type { IncomingMessage } from "node:http"
import type { Exchange } from "../exchange.ts"
import { holdsBodyBack } from "./expect-continue.ts"

/** The unread rest of a body of at most this size is read, and the connection is kept. */
const smallBytes = 64 * 1024

const hasBody = (req: IncomingMessage) =>
  req.headers["transfer-encoding"] !== undefined || Number(req.headers["content-length"] ?? 0) > 0

/**
 * A large body, or one of unknown length, that will not be read: the connection can't be reused.
 */
export const leavesBodyUnread = ({ req, res }: Exchange): boolean => {
  if (req.complete || !hasBody(req)) return false
  return (
    !res.shouldKeepAlive ||
    req.headers["transfer-encoding"] !== undefined ||
    Number(req.headers["content-length"]) > smallBytes ||
    holdsBodyBack(res)
  )
}

/**
 * Closing a socket with unread bytes sends a reset, which can destroy a reply that the client has
 * not read yet (RFC 9112, section 9.6). So the rest of the body is discarded for up to `lingerMs`
 * before the response ends. The reply itself is complete by then: its length was announced. A piece
 * in each turn of the event loop: Node would read megabytes of every such socket at once.
 */
export const endAfterDiscarding = ({ req, res }: Exchange, lingerMs: number): void => {
  const timer = setTimeout(finish, lingerMs)
  function finish() {
    clearTimeout(timer)
    res.end()
  }
  req.once("end", finish)
  req.once("close", finish)
  req.on("data", () => {
    req.pause()
    setImmediate(() => req.resume())
  })
  // who read a part of it has paused it
  req.resume()
}
