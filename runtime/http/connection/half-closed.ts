import type { Server } from "node:http"
import type { Socket } from "node:net"
import type { InFlight } from "./in-flight.ts"

/** Node takes a client that sends no more for one that has left, unless this is set. */
interface HalfOpenServer {
  httpAllowHalfOpen: boolean
}

/** A reply that begins before so many checks reaches the client without an interim response. */
const quietChecks = 3

/**
 * Lets a client that has closed its side for writing (`nc -N`, `shutdown(SHUT_WR)`) read its reply.
 *
 * A client that has left looks the same until bytes reach it: then it resets the connection, which
 * the next write notices, even an empty one, and its call is interrupted. A stream gets a comment at
 * each check. Before a whole reply nothing may be written but an interim response, which clients
 * discard if they did not ask for it (RFC 9110, section 15.2.1): it is sent to slow replies only.
 */
export const serveHalfClosed = (server: Server, inFlight: InFlight, checkMs: number): void => {
  const halfOpen: HalfOpenServer = server as Server & HalfOpenServer
  halfOpen.httpAllowHalfOpen = true
  const watch = (socket: Socket) => {
    const owed = inFlight.owedBy(socket)
    if (!owed.length) return
    for (const { res } of owed) if (!res.headersSent) res.shouldKeepAlive = false
    let checks = 0
    const check = () => {
      // no request follows the end, so nothing is looked up again: many may be half-closed
      const first = owed.find(({ res }) => !res.writableEnded)
      if (first?.streaming)
        return void (first.res.writableNeedDrain || first.res.write(": ping\n\n"))
      const isDue = ++checks === quietChecks && first?.req.httpVersion === "1.1"
      if (isDue && !first.res.headersSent) first.res.writeContinue()
      else socket.write("")
    }
    const timer = setInterval(check, checkMs)
    socket.once("close", () => clearInterval(timer))
  }
  server.on("connection", (socket) => {
    socket.once("end", () => watch(socket))
  })
}
