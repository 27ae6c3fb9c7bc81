import type { Effect } from "effect"

export interface HealthCheck {
  readonly name: string
  /** Succeeds when the component works; the error text says what is wrong. */
  readonly check: Effect.Effect<void, string>
}
