import type { Server } from "node:http"
import type { Socket } from "node:net"
import { Effect } from "effect"
import type { InFlight } from "./in-flight.ts"

export interface Drainer {
  readonly isDraining: boolean
  /** Succeeds when every connection is closed, at the latest `timeoutMs` plus `settleMs` from now. */
  drain(timeoutMs: number): Effect.Effect<void>
}

/**
 * States: serving -> draining (no new connections; idle ones are closed; what is in flight goes on, with `Connection: close`) ->
 * cutting (after the timeout: calls are interrupted, streams get a last error event, calls settle) -> closed.
 */
export const makeDrainer = (server: Server, inFlight: InFlight, settleMs: number): Drainer => {
  let draining = false
  const sockets = new Set<Socket>()
  server.on("connection", (socket) => {
    sockets.add(socket)
    socket.once("close", () => sockets.delete(socket))
  })
  // a connection whose last reply had promised to keep it alive
  server.on("request", (_req, res) => {
    res.once("close", () => {
      if (draining) setImmediate(() => server.closeIdleConnections())
    })
  })
  const stopAccepting = Effect.sync(() => {
    draining = true
    server.close()
    for (const { res } of inFlight.all()) if (!res.headersSent) res.shouldKeepAlive = false
    server.closeIdleConnections()
    // Node counts a connection without any byte so far as busy
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
