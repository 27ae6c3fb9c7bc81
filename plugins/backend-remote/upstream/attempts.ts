import { Effect, Exit, Scope } from "effect"
import type { Clock } from "../../../core/services/clock.ts"
import type { Log } from "../../../core/services/log.ts"
import type { UpstreamMetrics } from "../upstream-metrics.ts"
import { choose } from "./choose.ts"
import { failure, type UpstreamFailure, verdicts } from "./failure.ts"
import type { Upstream } from "./upstream.ts"

export interface AttemptDeps {
  readonly model: string
  readonly retries: number
  readonly clock: Clock
  readonly log: Log
  readonly metrics: UpstreamMetrics
}

/** What an attempt gave, from where; `lost` records a failure after the first byte. */
export interface Attempt<A> {
  readonly value: A
  readonly upstream: Upstream
  readonly attempts: number
  lost(why: UpstreamFailure): void
}

/** What an attempt does at its upstream; what it opens is closed with the Scope. */
type Use<A> = (upstream: Upstream) => Effect.Effect<A, UpstreamFailure, Scope.Scope>

/** Before the same upstream is asked again, in ms, doubled each time, up to half of it less. */
const backoffMs = 50

/** Retries of all requests of a model: a fifth of them, and some at once. */
const mostSavedRetries = 10
const savedByRequest = 0.2

const recordFailure = (
  { model, log, metrics }: AttemptDeps,
  upstream: Upstream,
  why: UpstreamFailure,
  before = 0,
): void => {
  metrics.ended(upstream, why.kind)
  const isEjected = upstream.failed(why, before)
  const fields = { model, upstream: upstream.name, host: upstream.connection.host }
  if (why.kind !== "refused")
    log.warn("upstream.failed", "an upstream did not serve a request", {
      ...fields,
      kind: why.kind,
      reason: why.message,
    })
  if (!isEjected) return
  metrics.ejected(upstream)
  log.warn("upstream.ejected", "an upstream fails again and again, and gets no requests", fields)
}

/** Counts as the upstream's until the Scope closes, or at once where it fails. */
const attemptAt = <A>(deps: AttemptDeps, upstream: Upstream, use: Use<A>) =>
  Effect.gen(function* () {
    const { clock, metrics } = deps
    const scope = Scope.makeUnsafe()
    let isOpen = true
    const close = Effect.suspend(() => {
      if (!isOpen) return Effect.void
      isOpen = false
      upstream.outstanding--
      return Scope.close(scope, Exit.void)
    })
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        upstream.outstanding++
      }),
      () => close,
    )
    const beganMs = clock.monotonicMs()
    let before = 0
    const value = yield* use(upstream).pipe(
      Scope.provide(scope),
      Effect.tap(() =>
        Effect.sync(() => {
          before = upstream.succeeded()
          metrics.began(upstream, clock.monotonicMs() - beganMs)
        }),
      ),
      Effect.onInterrupt(() => Effect.sync(() => metrics.ended(upstream, "cancelled"))),
      Effect.tapError((why) =>
        Effect.andThen(
          Effect.sync(() => recordFailure(deps, upstream, why)),
          close,
        ),
      ),
    )
    return { value, lost: (why: UpstreamFailure) => recordFailure(deps, upstream, why, before) }
  })

/**
 * Returns what runs `use` on one upstream after the other until one succeeds, within the deadline.
 * A 4xx of the request itself is final.
 */
export const makeAttempts = (deps: AttemptDeps) => {
  let saved = mostSavedRetries
  const mayRetry = (): boolean => {
    if (saved < 1) return false
    saved--
    return true
  }
  return Effect.fnUntraced(function* <A>(
    upstreams: readonly Upstream[],
    key: string | undefined,
    use: Use<A>,
  ) {
    saved = Math.min(mostSavedRetries, saved + savedByRequest)
    const tried = new Set<Upstream>()
    let last = failure("busy", "all upstreams are paused", { retryAfterMs: 1_000 })
    for (let attempts = 1; attempts <= deps.retries + 1; attempts++) {
      const fresh = upstreams.filter((upstream) => !tried.has(upstream))
      const upstream = choose(fresh, key) ?? choose(upstreams, key)
      if (!upstream || (attempts > 1 && !mayRetry())) break
      if (attempts > 1) deps.metrics.retried(upstream)
      if (tried.has(upstream))
        yield* Effect.sleep(backoffMs * 2 ** (attempts - 2) * (0.5 + Math.random() / 2))
      tried.add(upstream)
      const outcome = yield* Effect.match(attemptAt(deps, upstream, use), {
        onSuccess: (begun) => ({ begun }),
        onFailure: (why) => ({ why }),
      })
      if ("begun" in outcome) {
        const done: Attempt<A> = { ...outcome.begun, upstream, attempts }
        return done
      }
      last = outcome.why
      if (!verdicts[last.kind].retry) break
    }
    return yield* last
  })
}
