import { Effect } from "effect"
import type { Json } from "../../../core/json.ts"
import type { HealthCheck } from "../../../core/ports/health.ts"
import type { Catalogue } from "../../../core/services/catalogue.ts"

export interface Readiness {
  readonly status: "starting" | "loading" | "failing" | "ready" | "draining"
  /** Plugins that have not started yet. */
  readonly starting: readonly string[]
  readonly models: readonly Json[]
  readonly checks: readonly {
    readonly name: string
    readonly ok: boolean
    readonly reason?: string
  }[]
}

export interface ReadinessDeps {
  readonly catalogue: Catalogue
  readonly checks: () => readonly HealthCheck[]
  /** Names of what has not started yet. */
  readonly starting: () => readonly string[]
  readonly phase: () => "starting" | "serving" | "draining"
  readonly checkTimeoutMs: number
}

/** `/readyz` is public: cached results keep its callers from loading the database. */
const checksKeptMs = 1_000

const modelStates = (catalogue: Catalogue): readonly Json[] =>
  catalogue.entries.map(({ id }) => {
    const state = catalogue.state(id)
    if (state.state === "ready") {
      const { servedBy, servedAt = servedBy, stats } = state.loaded
      const reproducible = stats?.().reproducible
      return {
        ...{ id, state: "ready", served_by: servedAt },
        ...(reproducible !== undefined && { reproducible: reproducible === 1 }),
      }
    }
    if (state.state === "failed") return { id, state: "failed", reason: state.reason }
    if (state.state === "pulling")
      return {
        id,
        state: "pulling",
        done_bytes: state.doneBytes,
        total_bytes: state.totalBytes ?? null,
      }
    return state.state === "loading"
      ? { id, state: "loading", detail: state.detail }
      : { id, state: "waiting" }
  })

const runCheck = ({ name, check }: HealthCheck, timeoutMs: number) =>
  check.pipe(
    Effect.timeoutOrElse({
      duration: timeoutMs,
      orElse: () => Effect.fail(`no answer within ${timeoutMs} ms`),
    }),
    Effect.match({
      onSuccess: () => ({ name, ok: true }),
      onFailure: (reason) => ({ name, ok: false, reason: String(reason) }),
    }),
    Effect.catchDefect((defect) => Effect.succeed({ name, ok: false, reason: String(defect) })),
  )

/**
 * The state of plugins, models and checks, and from them whether a load balancer should send
 * requests here.
 */
export const makeReadiness = (deps: ReadinessDeps): Effect.Effect<Effect.Effect<Readiness>> =>
  Effect.gen(function* () {
    const runAll = Effect.suspend(() =>
      Effect.forEach(deps.checks(), (check) => runCheck(check, deps.checkTimeoutMs), {
        concurrency: 8,
      }),
    )
    const checked = yield* Effect.cachedWithTTL(runAll, checksKeptMs)
    return Effect.gen(function* () {
      const phase = deps.phase()
      // before the plugins have started there is nothing to check
      const checks = phase === "starting" ? [] : yield* checked
      const models = modelStates(deps.catalogue)
      const states = deps.catalogue.entries.map(({ id }) => deps.catalogue.state(id).state)
      const status = (): Readiness["status"] => {
        if (phase !== "serving") return phase
        if (states.includes("failed") || checks.some(({ ok }) => !ok)) return "failing"
        return states.every((state) => state === "ready") ? "ready" : "loading"
      }
      return {
        status: status(),
        starting: phase === "starting" ? deps.starting() : [],
        models,
        checks,
      }
    })
  })
