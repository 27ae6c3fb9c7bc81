import { Effect, type Scope } from "effect"
import type { HealthCheck } from "../../core/ports/health.ts"
import { repeat } from "../../core/repeat.ts"
import type { ModelId } from "../../core/services/ids.ts"
import type { RemoteModel } from "./remote-model.ts"
import { type Probed, probe } from "./upstream/probe.ts"
import type { Upstream } from "./upstream/upstream.ts"

type Watched = Pick<RemoteModel, "id" | "options" | "upstreams" | "log">

/** Health of the upstreams of all remote models. */
export interface UpstreamHealth {
  /** Fails where a model has no upstream that works; the text names each with its reason. */
  readonly check: HealthCheck
  /** Probes the upstreams once, then again and again until the Scope closes. */
  watch(model: Watched): Effect.Effect<readonly Probed[], never, Scope.Scope>
}

const nameOf = ({ name, options }: Upstream) => `${name} (${new URL(options.url).host})`

/** `u2 (10.0.0.6:8000): its certificate has expired`; undefined: nothing is wrong. */
const troubleOf = (upstream: Upstream): string | undefined =>
  upstream.trouble === undefined ? undefined : `${nameOf(upstream)}: ${upstream.trouble}`

type Shown = Pick<Watched, "upstreams" | "options">
const chainOf = ({ options }: Shown) => options.fallback.map((id) => `else ${id}`)

/** What everybody may read in `GET /v1/models`: nothing of the upstreams. */
export const servedBy = (model: Shown): string => ["remote", ...chainOf(model)].join(", ")

/** What `/readyz` and the log say: the upstreams with their hosts, and what is wrong with them. */
export const servedAt = (model: Shown): string => {
  const all = model.upstreams.map((upstream) => troubleOf(upstream) ?? nameOf(upstream))
  return `remote ${[...all, ...chainOf(model)].join(", ")}`
}

const checkOne = (model: ModelId, upstream: Upstream, log: Watched["log"]) =>
  probe(upstream).pipe(
    Effect.match({
      onSuccess: (probed) => ({ probed, trouble: undefined }),
      onFailure: ({ message }) => ({ probed: undefined, trouble: message }),
    }),
    Effect.map(({ probed, trouble }) => {
      if (!upstream.checked(trouble)) return probed
      const fields = { model, upstream: upstream.name, host: upstream.connection.host }
      if (trouble === undefined)
        log.info("upstream.well", "an upstream works again, and gets requests", fields)
      else
        log.warn("upstream.unfit", "an upstream can't serve the model, and gets no requests", {
          ...fields,
          reason: trouble,
        })
      return probed
    }),
  )

export const makeUpstreamHealth = (): UpstreamHealth => {
  const models = new Set<Watched>()
  const trouble = ({ id, upstreams, options }: Watched): string | undefined => {
    if (options.fallback.length > 0) return undefined
    const found = upstreams.map(troubleOf)
    return found.includes(undefined) ? undefined : `${id}: ${found.join("; ")}`
  }
  return {
    check: {
      name: "backend-remote",
      check: Effect.suspend(() => {
        const found = [...models].flatMap((model) => trouble(model) ?? [])
        return found.length === 0 ? Effect.void : Effect.fail(found.join(". "))
      }),
    },
    watch: (model) =>
      Effect.gen(function* () {
        const { id, upstreams, options, log } = model
        yield* Effect.acquireRelease(
          Effect.sync(() => void models.add(model)),
          () => Effect.sync(() => void models.delete(model)),
        )
        const all = Effect.forEach(upstreams, (upstream) => checkOne(id, upstream, log), {
          concurrency: "unbounded",
        })
        const probed = yield* all
        const everyMs = options.healthIntervalMs
        yield* repeat(
          log,
          {
            event: "upstream.check_failed",
            message: "upstreams can't be checked",
            everyMs,
            isDelayed: true,
          },
          all,
        )
        return probed.flatMap((one) => one ?? [])
      }),
  }
}
