import type { Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { Effect } from "effect"
import type { InFlight } from "./in-flight.ts"

export interface Drainer {
  readonly isDraining: boolean
  /** Succeeds when every connection is closed, after at most `timeoutMs` plus `settleMs`. */
  drain(timeoutMs: number): Effect.Effect<void>
}

/**
 * States: serving -> draining (no new connections; idle ones are closed; open requests go on, with
 * `Connection: close`) ->
 * aborting (after the timeout: calls are interrupted and settled, streams get an error as their
 * last event) -> closed.
 */
export const makeDrainer = (server: Server, inFlight: InFlight, settleMs: number): Drainer => {
  let draining = false
  const sockets = new Set<Socket>()
  server.on("connection", (socket) => {
    sockets.add(socket)
    socket.once("close", () => sockets.delete(socket))
  })
  /** Closes a connection whose last reply still announced keep-alive. */
  const closeAfter = (res: ServerResponse) =>
    res.once("close", () => setImmediate(() => server.closeIdleConnections()))
  server.on("request", (_req, res) => {
    if (draining) closeAfter(res)
  })
  const stopAccepting = Effect.sync(() => {
    draining = true
    server.close()
    for (const { res } of inFlight.all()) {
      if (!res.headersSent) res.shouldKeepAlive = false
      closeAfter(res)
    }
    server.closeIdleConnections()
    // Node does not count a connection that has sent nothing as idle
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
  })
  const within = (ms: number) => inFlight.empty.pipe(Effect.timeoutOption(ms))
  return {
    get isDraining() {
      return draining
    },
    drain: (timeoutMs) =>
      Effect.gen(function* () {
        yield* stopAccepting
        yield* within(timeoutMs)
        inFlight.abortAll("draining")
        yield* within(settleMs)
        server.closeAllConnections()
      }),
  }
}
