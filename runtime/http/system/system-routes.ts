import { Effect } from "effect"
import type { Json } from "../../../core/json.ts"
import type { ExposedMetrics } from "../../services/metrics.ts"
import type { Exchange } from "../exchange.ts"
import type { ApiTitle } from "../openapi/document.ts"
import { sendJson, sendText } from "../response/reply.ts"
import type { Readiness } from "./health.ts"

/** A GET route of the server itself, without an endpoint: health, metrics, the API document. */
export interface SystemRoute {
  readonly name: string
  readonly path: string
  readonly run: (exchange: Exchange) => Effect.Effect<void>
}

export interface SystemRouteDeps {
  readonly about: ApiTitle
  readonly readiness: Effect.Effect<Readiness>
  readonly metrics: ExposedMetrics
  readonly openApi: () => Json
  readonly lingerMs: number
}

const json = (
  name: string,
  path: string,
  lingerMs: number,
  value: Effect.Effect<{ readonly status: number; readonly json: Json }>,
): SystemRoute => ({
  name,
  path,
  run: (exchange) =>
    Effect.map(value, (reply) =>
      sendJson(exchange, { ...reply, headers: { "cache-control": "no-store" } }, lingerMs),
    ),
})

/** `/`, `/healthz`, `/readyz`, `/openapi.json` and `/metrics`. */
export const systemRoutes = ({
  about,
  readiness,
  metrics,
  openApi,
  lingerMs,
}: SystemRouteDeps): readonly SystemRoute[] => [
  json(
    "root",
    "/",
    lingerMs,
    Effect.succeed({
      status: 200,
      json: {
        ...about,
        openapi: "/openapi.json",
        models: "/v1/models",
        health: "/healthz",
        ready: "/readyz",
      },
    }),
  ),
  json("healthz", "/healthz", lingerMs, Effect.succeed({ status: 200, json: { status: "ok" } })),
  json(
    "readyz",
    "/readyz",
    lingerMs,
    Effect.map(readiness, (ready) => ({
      status: ready.status === "ready" ? 200 : 503,
      json: ready,
    })),
  ),
  json(
    "openapi",
    "/openapi.json",
    lingerMs,
    Effect.sync(() => ({ status: 200, json: openApi() })),
  ),
  {
    name: "metrics",
    path: "/metrics",
    run: (exchange) =>
      Effect.map(Effect.promise(metrics.expose), (text) =>
        sendText(
          exchange,
          { status: 200, headers: { "content-type": metrics.contentType } },
          text,
          lingerMs,
        ),
      ),
  },
]
