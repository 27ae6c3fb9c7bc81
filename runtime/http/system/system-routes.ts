import { createHash } from "node:crypto"
import { Effect, Stream } from "effect"
import type { ApiError } from "../../../core/errors.ts"
import type { Json } from "../../../core/json.ts"
import type { ExposedMetrics } from "../../services/metrics.ts"
import type { Exchange } from "../exchange.ts"
import type { ApiTitle } from "../openapi/document.ts"
import { sendBytes, sendJson } from "../response/reply.ts"
import type { Readiness } from "./health.ts"
import { metricsRoute, type ScrapeSettings } from "./scrape.ts"

/** A GET route of the server itself, without an endpoint: health, metrics, the API document. */
export interface SystemRoute {
  readonly name: string
  readonly path: string
  /** Whether pages of other origins may read it. */
  readonly forOthers?: true
  /** Where browsers are sent instead: the first of these that an endpoint serves. */
  readonly pages?: readonly string[]
  readonly run: (exchange: Exchange) => Effect.Effect<void, ApiError>
}

export interface SystemRouteDeps {
  readonly about: ApiTitle
  readonly readiness: Effect.Effect<Readiness>
  readonly metrics: ExposedMetrics
  readonly scrape: ScrapeSettings
  readonly openApi: () => ApiDocument
  readonly lingerMs: number
  readonly writeStallMs: number
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

/** The API document, serialized once. */
export interface ApiDocument {
  readonly bytes: Uint8Array
  readonly etag: string
}

export const toApiDocument = (document: Json): ApiDocument => {
  const bytes = Buffer.from(JSON.stringify(document))
  return { bytes, etag: `"${createHash("sha256").update(bytes).digest("base64url").slice(0, 22)}"` }
}

/** Browsers name HTML; clients of the API say JSON, anything, or nothing. */
export const wantsPage = (accept: string | undefined): boolean =>
  accept !== undefined &&
  /\btext\/html\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(accept) &&
  !/\bapplication\/json\b/i.test(accept)

/** `/`, `/healthz`, `/readyz`, `/openapi.json`, and `/metrics` where it has no port of its own. */
export const systemRoutes = ({
  about,
  readiness,
  metrics,
  scrape,
  openApi,
  lingerMs,
  writeStallMs,
}: SystemRouteDeps): readonly SystemRoute[] => [
  {
    ...json(
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
    pages: ["/dashboard", "/docs"],
  },
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
  {
    name: "openapi",
    path: "/openapi.json",
    forOthers: true,
    run: (exchange) =>
      Effect.suspend(() => {
        const { bytes, etag } = openApi()
        return sendBytes(
          exchange,
          {
            status: 200,
            // cached, but revalidated each time: an update of the server changes it
            headers: { etag, "cache-control": "public, no-cache" },
            mediaType: "application/json; charset=utf-8",
            bytes: Stream.succeed(bytes),
            shared: bytes,
          },
          writeStallMs,
        )
      }),
  },
  ...(scrape.port === undefined ? [metricsRoute(metrics, scrape, lingerMs)] : []),
]
