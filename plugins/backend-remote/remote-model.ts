import { Effect, type Scope } from "effect"
import type { Catalogue } from "../../core/services/catalogue.ts"
import type { Clock } from "../../core/services/clock.ts"
import type { ModelId } from "../../core/services/ids.ts"
import type { Log } from "../../core/services/log.ts"
import type { Outbound } from "../../core/services/outbound.ts"
import type { Workers } from "../../core/services/workers.ts"
import type { RemoteOptions } from "./options.ts"
import { type OwnCounter, openOwnCounter } from "./own-count.ts"
import { makeAttempts } from "./upstream/attempts.ts"
import { openConnection } from "./upstream/connection.ts"
import type { UpstreamFailure } from "./upstream/failure.ts"
import { Upstream } from "./upstream/upstream.ts"
import type { UpstreamMetrics } from "./upstream-metrics.ts"

export interface RemoteServices {
  readonly clock: Clock
  readonly log: Log
  readonly catalogue: Catalogue
  readonly workers: Workers
  readonly outbound: Outbound
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
  readonly workers: Workers
  /** Where a tokenizer is named. */
  readonly counter: OwnCounter | undefined
  readonly attempts: ReturnType<typeof makeAttempts>
}

/** Opens the connections of a model, and its tokenizer below `path`; nothing is sent yet. */
export const openRemoteModel = (
  { id, path }: { readonly id: ModelId; readonly path: string },
  options: RemoteOptions,
  { clock, log, workers, metricsOf }: RemoteServices,
): Effect.Effect<Omit<RemoteModel, "contextTokens">, UpstreamFailure, Scope.Scope> =>
  Effect.gen(function* () {
    const upstreams = yield* Effect.forEach(options.upstreams, (one, index) =>
      Effect.map(
        openConnection(one, options.connectTimeoutMs),
        (connection) => new Upstream(one.name ?? `u${index + 1}`, one, connection, options, clock),
      ),
    )
    const { tokenizer } = options
    const counter =
      tokenizer === undefined ? undefined : yield* openOwnCounter(tokenizer, path, { workers, log })
    const metrics = metricsOf(id)
    metrics.watch(upstreams)
    const attempts = makeAttempts({ model: id, retries: options.retries, clock, log, metrics })
    return { id, options, upstreams, clock, log, metrics, workers, counter, attempts }
  })

/** What an upstream reports is not what is charged. */
export const corrected = (
  { id, log, metrics }: Pick<RemoteModel, "id" | "log" | "metrics">,
  upstream: Upstream,
  reason: string,
): void => {
  metrics.corrected(upstream)
  log.warn("upstream.usage_corrected", "the usage that an upstream reports can't be", {
    model: id,
    upstream: upstream.name,
    reason,
  })
}
