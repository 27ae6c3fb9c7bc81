import { createHash, timingSafeEqual } from "node:crypto"
import type { IncomingMessage, ServerResponse } from "node:http"
import { Effect, type Scope } from "effect"
import { apiError, errorHeaders } from "../../../core/errors.ts"
import type { Log } from "../../../core/services/log.ts"
import type { ExposedMetrics } from "../../services/metrics.ts"
import { ListenError, listen, makeNodeServer, untilPortFree, urlOf } from "../connection/listen.ts"
import { envelope } from "../errors.ts"
import { requestIdOf } from "../exchange.ts"
import type { HttpLimits } from "../limits.ts"
import { sendText } from "../response/reply.ts"
import type { HttpTimings } from "../timings.ts"
import type { SystemRoute } from "./system-routes.ts"

/** Who may read `/metrics`, and where; by default everybody, beside the API. */
export interface ScrapeSettings {
  /** A port of its own; 0: any free one. Absent: that of the API. */
  readonly port?: number | undefined
  /** Where the own port listens. */
  readonly host: string
  /** Empty: no token is needed. */
  readonly bearer: string
}

export const openScrape: ScrapeSettings = { host: "127.0.0.1", bearer: "" }

const digest = (text: string): Buffer => createHash("sha256").update(text).digest()

const mayRead = ({ bearer }: ScrapeSettings, { headers }: IncomingMessage): boolean =>
  bearer === "" || timingSafeEqual(digest(headers.authorization ?? ""), digest(`Bearer ${bearer}`))

const refusal = apiError(
  "authentication_error",
  "/metrics needs the token of server.metrics.bearer: send it as 'Authorization: Bearer <token>'.",
  { headers: { "www-authenticate": "Bearer" } },
)

export const metricsRoute = (
  metrics: ExposedMetrics,
  settings: ScrapeSettings,
  lingerMs: number,
): SystemRoute => ({
  name: "metrics",
  path: "/metrics",
  run: (exchange) =>
    Effect.gen(function* () {
      if (!mayRead(settings, exchange.req)) return yield* refusal
      const text = yield* Effect.promise(metrics.expose)
      const headers = { "content-type": metrics.contentType, "cache-control": "no-store" }
      sendText(exchange, { status: 200, headers }, text, lingerMs)
    }),
})

interface ScrapeDeps {
  readonly metrics: ExposedMetrics
  readonly log: Log
  readonly limits: HttpLimits
  readonly timings: HttpTimings
}

const answer = async (
  settings: ScrapeSettings,
  metrics: ExposedMetrics,
  req: IncomingMessage,
  res: ServerResponse,
): Promise<void> => {
  const refuse = (error: ReturnType<typeof apiError>, status: number) => {
    res.writeHead(status, { "content-type": "application/json", ...errorHeaders(error) })
    res.end(JSON.stringify(envelope(error, requestIdOf(undefined))))
  }
  req.resume()
  if (req.url?.split("?")[0] !== "/metrics")
    return refuse(apiError("not_found", "This port serves /metrics only."), 404)
  if (req.method !== "GET" && req.method !== "HEAD")
    return refuse(
      apiError("method_not_allowed", undefined, { headers: { allow: "GET, HEAD" } }),
      405,
    )
  if (!mayRead(settings, req)) return refuse(refusal, 401)
  const text = await metrics.expose()
  res.writeHead(200, { "content-type": metrics.contentType, "cache-control": "no-store" })
  res.end(text)
}

/** Serves `/metrics`, and nothing else, on the own port. Closing the Scope closes it. */
export const serveMetrics = (
  settings: ScrapeSettings & { readonly port: number },
  { metrics, log, limits, timings }: ScrapeDeps,
): Effect.Effect<string, ListenError, Scope.Scope> =>
  Effect.gen(function* () {
    const server = makeNodeServer(limits, timings)
    const failed = (cause: unknown) =>
      log.error("metrics.request_failed", "the metrics could not be read", { cause: String(cause) })
    server.on("request", (req, res) => {
      res.setHeader("X-Content-Type-Options", "nosniff")
      answer(settings, metrics, req, res).catch((cause) => {
        failed(cause)
        res.destroy()
      })
    })
    const { host, port } = settings
    yield* untilPortFree(host, port, timings, log)
    const address = yield* Effect.acquireRelease(
      Effect.mapError(
        listen(server, host, port),
        (error) => new ListenError({ message: `server.metrics: ${error.message}`, cause: error }),
      ),
      () =>
        Effect.sync(() => {
          server.close()
          server.closeAllConnections()
        }),
    )
    server.on("error", failed)
    const url = `${urlOf(address, host)}/metrics`
    log.info("metrics.listening", "metrics have a port of their own", { url })
    return url
  })
