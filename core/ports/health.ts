import type { Effect } from "effect"

export interface HealthCheck {
  readonly name: string
  /** Succeeds when the part works now; the text says what is wrong. */
  readonly check: Effect.Effect<void, string>
}
