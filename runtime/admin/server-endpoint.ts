import { Effect, Schema } from "effect"
import { defineEndpoint, freePlan } from "../../core/ports/endpoint.ts"
import type { Catalogue } from "../../core/services/catalogue.ts"
import type { Clock } from "../../core/services/clock.ts"
import type { Deployment } from "../../core/services/deployment.ts"
import type { WhenStarted } from "../../core/started.ts"
import type { Readiness } from "../http/system/health.ts"
import type { ExposedMetrics } from "../services/metrics.ts"
import { modelFacts, queueMetrics } from "./model-facts.ts"
import { makeProcessFacts } from "./process-facts.ts"

export interface ServerEndpointDeps {
  readonly readiness: WhenStarted<Effect.Effect<Readiness>>
  readonly catalogue: Catalogue
  readonly metrics: ExposedMetrics
  readonly clock: Clock
  readonly deployment: Deployment
  readonly version: string
}

/** Gauges and counters that are shown as they are, where a plugin of this deployment has them. */
const shownMetrics = [
  "rakit_http_requests_in_flight",
  "rakit_http_streams_open",
  "rakit_db_client_connection_count",
  "rakit_db_client_connection_max",
  "rakit_db_client_connection_pending_requests",
  "rakit_settlements_waiting",
  "rakit_queue_jobs",
  "rakit_batches",
  "rakit_batch_lines_waiting",
  "rakit_batch_lines_total",
  "rakit_ingest_files",
  "rakit_ingest_files_total",
] as const

const bytes = Schema.Int
const part = Schema.NullOr(Schema.Finite).annotate({ description: "0 to 1; null: not known." })

const ModelFacts = Schema.Struct({
  id: Schema.String,
  task: Schema.String,
  backend: Schema.String,
  state: Schema.Literals(["waiting", "pulling", "loading", "ready", "failed"]),
  served_by: Schema.optionalKey(Schema.String).annotate({ description: "Engine and device." }),
  reason: Schema.optionalKey(Schema.String),
  done_bytes: Schema.optionalKey(bytes),
  total_bytes: Schema.optionalKey(Schema.NullOr(bytes)),
  context_window: Schema.Int,
  precision: Schema.NullOr(Schema.String).annotate({
    description: "That of the config; null: the backend's default.",
  }),
  adapters: Schema.Array(Schema.String),
  running: Schema.Int,
  waiting: Schema.Int,
  batch_running: Schema.Int.annotate({ description: "Lines of batches." }),
  batch_waiting: Schema.Int,
  engine: Schema.NullOr(
    Schema.Struct({
      kv_cache_usage: part,
      prefix_cache_usage: part,
      prefix_cache_hits: part,
      adapter_bytes: Schema.NullOr(bytes),
      restarts: Schema.NullOr(Schema.Int),
    }),
  ).annotate({ description: "Shared by models of one file." }),
})

const ProcessFacts = Schema.Struct({
  hostname: Schema.String,
  pid: Schema.Int,
  node: Schema.String,
  started_at: Schema.Int.annotate({ description: "Unix seconds." }),
  uptime_seconds: Schema.Int,
  memory: Schema.Struct({
    rss_bytes: bytes,
    heap_used_bytes: bytes,
    heap_total_bytes: bytes,
    external_bytes: bytes,
    limit_bytes: bytes.annotate({ description: "Of the container, or the machine's." }),
  }),
  cores: Schema.Int,
  cpu_cores: Schema.Finite.annotate({ description: "Used since the last reading." }),
  event_loop: Schema.Finite.annotate({
    description: "The part of the time in which the main thread was busy: 0 to 1.",
  }),
  disk: Schema.NullOr(Schema.Struct({ free_bytes: bytes, total_bytes: bytes })).annotate({
    description: "Of the data folder.",
  }),
})

export const ServerReply = Schema.Struct({
  object: Schema.Literal("server"),
  name: Schema.String,
  version: Schema.String,
  role: Schema.Literals(["api", "worker", "all"]),
  status: Schema.Literals(["starting", "loading", "failing", "ready", "draining"]),
  checks: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      ok: Schema.Boolean,
      reason: Schema.optionalKey(Schema.String),
    }),
  ),
  process: ProcessFacts,
  models: Schema.Array(ModelFacts),
  metrics: Schema.Array(
    Schema.Struct({
      name: Schema.String,
      labels: Schema.Record(Schema.String, Schema.String),
      value: Schema.Finite,
    }),
  ).annotate({ description: "Some of those of `/metrics`, with its names." }),
}).annotate({ identifier: "Server" })

/** The state of the process that answers; other servers of the deployment have their own. */
export const serverEndpoint = (deps: ServerEndpointDeps) => {
  const { catalogue, metrics, clock, deployment, version } = deps
  const processFacts = makeProcessFacts(clock, deployment)
  const facts = Effect.gen(function* () {
    const { status, checks } = yield* yield* deps.readiness
    const measured = yield* Effect.promise(() => metrics.read([...queueMetrics, ...shownMetrics]))
    return {
      status: 200,
      headers: { "cache-control": "no-store" },
      json: {
        object: "server",
        name: deployment.name,
        version,
        role: deployment.role ?? "all",
        status,
        checks,
        process: yield* processFacts,
        models: modelFacts(catalogue, measured),
        metrics: shownMetrics.flatMap((name) =>
          (measured.get(name) ?? []).map((one) => ({ name, ...one })),
        ),
      },
    }
  })
  return defineEndpoint({
    id: "admin.server",
    summary:
      "State of the server that answers: health with reasons, memory, load, models with their queues.",
    method: "GET",
    path: "/admin/server",
    access: "admin",
    body: "none",
    maxBodyBytes: 0,
    reply: ServerReply,
    plan: () => Effect.succeed(freePlan(facts)),
  })
}
