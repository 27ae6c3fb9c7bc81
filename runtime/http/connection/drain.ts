import type { Server, ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { Effect } from "effect"
import { LinkedList } from "../../services/linked-list.ts"
import type { InFlight } from "./in-flight.ts"

/** How long new requests are refused before no connection is accepted any more. */
const refuseMs = 500
/** How long a load balancer may take from its connection to its request. */
const sendMs = 200

export interface Drainer {
  readonly isDraining: boolean
  /** New requests are to be refused with 503. */
  readonly isRefusing: boolean
  /**
   * Succeeds when every connection is closed, after at most `delayMs`, `timeoutMs` and `settleMs`
   * together.
   */
  drain(timeoutMs: number, delayMs?: number): Effect.Effect<void>
}

/**
 * States: serving -> leaving (for `delayMs`: what comes is served with `Connection: close`, and
 * `/readyz` is 503, so that load balancers look elsewhere) -> refusing (new requests are 503, of
 * which nothing has run: one that reads no health checks, as nginx, sends them elsewhere, and no
 * connection arrives when the socket closes, which would be reset) -> draining (no new connections; idle ones are closed; open requests go on, with
 * `Connection: close`) ->
 * aborting (after the timeout: calls are interrupted and settled, streams get an error as their
 * last event) -> closed.
 */
export const makeDrainer = (server: Server, inFlight: InFlight, settleMs: number): Drainer => {
  let draining = false
  let isRefusing = false
  let isClosed = false
  const sockets = new LinkedList<Socket>()
  server.on("connection", (socket) => {
    const link = sockets.add(socket)
    socket.once("close", () => sockets.remove(link))
  })
  /** Closes a connection whose last reply still announced keep-alive. */
  const closeAfter = (res: ServerResponse) =>
    res.once("close", () => setImmediate(() => server.closeIdleConnections()))
  server.on("request", (_req, res) => {
    if (isClosed) closeAfter(res)
  })
  const leave = Effect.sync(() => {
    draining = true
    for (const { res } of inFlight.all()) if (!res.headersSent) res.shouldKeepAlive = false
  })
  const stopAccepting = Effect.sync(() => {
    isClosed = true
    isRefusing = false
    server.close()
    for (const { res } of inFlight.all()) closeAfter(res)
    for (const exchange of inFlight.all()) if (exchange.isWatch) exchange.abort("draining")
    server.closeIdleConnections()
  })
  /** Node does not count a connection that has sent nothing as idle. */
  const closeSilent = () => {
    for (const socket of sockets.values()) if (socket.bytesRead === 0) socket.destroy()
  }
  const within = (ms: number) => inFlight.empty.pipe(Effect.timeoutOption(ms))
  return {
    get isDraining() {
      return draining
    },
    get isRefusing() {
      return isRefusing
    },
    drain: (timeoutMs, delayMs = 0) =>
      Effect.gen(function* () {
        yield* leave
        if (delayMs > 0) {
          yield* Effect.sleep(delayMs)
          isRefusing = true
          yield* Effect.sleep(refuseMs)
        }
        // after a turn in which connections were accepted: those that wait would be reset
        yield* Effect.promise(() => new Promise<void>((done) => setImmediate(done)))
        yield* stopAccepting
        // the request of a new connection may be on its way
        if (delayMs > 0) yield* Effect.sleep(sendMs)
        closeSilent()
        yield* within(timeoutMs)
        inFlight.abortAll("draining")
        yield* within(settleMs)
        server.closeAllConnections()
      }),
  }
}
