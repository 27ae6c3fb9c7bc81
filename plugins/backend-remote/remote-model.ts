import { Effect, type Scope } from "effect"
import type { Catalogue } from "../../core/services/catalogue.ts"
import type { Clock } from "../../core/services/clock.ts"
import type { ModelId } from "../../core/services/ids.ts"
import type { Log } from "../../core/services/log.ts"
import type { RemoteOptions } from "./options.ts"
import { makeAttempts } from "./upstream/attempts.ts"
import { openConnection } from "./upstream/connection.ts"
import type { UpstreamFailure } from "./upstream/failure.ts"
import { Upstream } from "./upstream/upstream.ts"
import type { UpstreamMetrics } from "./upstream-metrics.ts"

export interface RemoteServices {
  readonly clock: Clock
  readonly log: Log
  readonly catalogue: Catalogue
  readonly metricsOf: (model: ModelId) => UpstreamMetrics
}

/** An open remote model: its upstreams, and what its task needs. */
export interface RemoteModel {
  readonly id: ModelId
  readonly options: RemoteOptions
  readonly contextTokens: number
  readonly upstreams: readonly Upstream[]
  readonly clock: Clock
  readonly log: Log
  readonly metrics: UpstreamMetrics
  readonly attempts: ReturnType<typeof makeAttempts>
}

/** Opens the connections of a model; nothing is sent yet. */
export const openRemoteModel = (
  id: ModelId,
  options: RemoteOptions,
  { clock, log, metricsOf }: RemoteServices,
): Effect.Effect<Omit<RemoteModel, "contextTokens">, UpstreamFailure, Scope.Scope> =>
  Effect.gen(function* () {
    const upstreams = yield* Effect.forEach(options.upstreams, (one, index) =>
      Effect.map(
        openConnection(one, options.connectTimeoutMs),
        (connection) => new Upstream(one.name ?? `u${index + 1}`, one, connection, options, clock),
      ),
    )
    const metrics = metricsOf(id)
    metrics.watch(upstreams)
    const attempts = makeAttempts({ model: id, retries: options.retries, clock, log, metrics })
    return { id, options, upstreams, clock, log, metrics, attempts }
  })
