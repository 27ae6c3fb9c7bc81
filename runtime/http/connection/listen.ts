import { createServer, type Server } from "node:http"
import { type AddressInfo, createServer as createNetServer } from "node:net"
import { Data, Effect } from "effect"
import type { Log } from "../../../core/services/log.ts"
import type { HttpLimits } from "../limits.ts"
import type { HttpTimings } from "../timings.ts"

/** The address can't be used; the message says what to do. */
export class ListenError extends Data.TaggedError("ListenError")<{
  readonly message: string
  readonly cause?: unknown
}> {}

const listenMessage = (error: NodeJS.ErrnoException, host: string, port: number): string => {
  if (error.code === "EADDRINUSE")
    return `Port ${port} is in use. Stop what listens there, or set PORT to another one.`
  if (error.code === "EACCES") return `Port ${port} needs more rights. Set PORT to 1024 or more.`
  if (error.code === "EADDRNOTAVAIL" || error.code === "ENOTFOUND")
    return `This machine has no address ${host}. Correct server.host.`
  return `Can't listen on ${host}:${port}: ${error.message}`
}

const isInUse = (host: string, port: number): Effect.Effect<boolean> =>
  Effect.callback((resume) => {
    const probe = createNetServer()
    probe.once("error", ({ code }: NodeJS.ErrnoException) =>
      resume(Effect.succeed(code === "EADDRINUSE")),
    )
    probe.listen({ host, port }, () => probe.close(() => resume(Effect.succeed(false))))
  })

const pollMs = 100

/** Waits while the port is in use: a server that was killed may need a moment to end. */
export const untilPortFree = (
  host: string,
  port: number,
  { portWaitMs }: HttpTimings,
  log: Log,
): Effect.Effect<void> =>
  Effect.gen(function* () {
    if (port === 0 || portWaitMs === 0 || !(yield* isInUse(host, port))) return
    log.warn("http.port_in_use", "the port is in use; waiting for it to be free", {
      port,
      seconds: portWaitMs / 1000,
    })
    for (let waited = 0; waited < portWaitMs && (yield* isInUse(host, port)); waited += pollMs)
      yield* Effect.sleep(pollMs)
  })

export const listen = (
  server: Server,
  host: string,
  port: number,
): Effect.Effect<AddressInfo, ListenError> =>
  Effect.callback((resume) => {
    const refuse = (error: NodeJS.ErrnoException) =>
      resume(
        Effect.fail(new ListenError({ message: listenMessage(error, host, port), cause: error })),
      )
    server.once("error", refuse)
    server.listen({ host, port, backlog: 1024 }, () => {
      server.off("error", refuse)
      resume(Effect.succeed(server.address() as AddressInfo))
    })
  })

export const makeNodeServer = (limits: HttpLimits, timings: HttpTimings): Server => {
  const server = createServer({
    maxHeaderSize: limits.maxHeaderBytes,
    headersTimeout: timings.headersTimeoutMs,
    requestTimeout: timings.requestTimeoutMs,
    connectionsCheckingInterval: timings.timeoutCheckMs,
    keepAliveTimeout: timings.keepAliveTimeoutMs,
    keepAlive: true,
    noDelay: true,
    // app.ts refuses it: Node's own refusal has no body
    requireHostHeader: false,
  })
  server.maxConnections = limits.maxConnections
  return server
}

export const urlOf = (address: AddressInfo, host: string): string => {
  const open = host === "0.0.0.0" || host === "::" || host === ""
  const name = open
    ? "localhost"
    : address.family === "IPv6"
      ? `[${address.address}]`
      : address.address
  return `http://${name}:${address.port}`
}
