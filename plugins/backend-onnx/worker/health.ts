import { basename } from "node:path"
import { Effect, type Scope } from "effect"
import type { HealthCheck } from "../../../core/ports/health.ts"
import type { Engine } from "./host.ts"

type Watched = Pick<Engine<never, unknown, unknown>, "available">

/** Health of the open engines of all models. */
export interface EngineHealth {
  /**
   * Fails while an engine's thread is being restarted, and permanently after it was given up. A
   * full queue is healthy.
   */
  readonly check: HealthCheck
  /** Watches an engine until the Scope closes. */
  watch(path: string, engine: Watched): Effect.Effect<void, never, Scope.Scope>
}

export const makeEngineHealth = (): EngineHealth => {
  const engines = new Map<Watched, string>()
  const troubleOf = ([engine, path]: readonly [Watched, string]) =>
    Effect.catch(engine.available, (error) =>
      error.code === "backend_busy"
        ? Effect.void
        : Effect.fail(`${basename(path)}: ${error.message}`),
    )
  return {
    check: {
      name: "backend-onnx",
      check: Effect.suspend(() => Effect.forEach(engines, troubleOf, { discard: true })),
    },
    watch: (path, engine) =>
      Effect.acquireRelease(
        Effect.sync(() => void engines.set(engine, path)),
        () => Effect.sync(() => void engines.delete(engine)),
      ),
  }
}
