import type { Effect, Schema, Scope } from "effect"
import type { PortError } from "../errors.ts"
import type { Json } from "../json.ts"
import type { Transaction } from "./transaction.ts"

/**
 * A kind of background work: a value, like an endpoint. At least once: a payload whose worker dies is run again after `leaseMs`, so `run` is idempotent.
 * States of one payload: waiting -> leased -> done | waiting (failed, after a backoff) | dead (failed `attempts` times).
 */
export interface Job<Payload = Json> {
  readonly name: string
  readonly payload: Schema.Codec<Payload, Json>
  /** How many run at once in one process. */
  readonly concurrency: number
  readonly leaseMs: number
  readonly attempts: number
  /** Interrupted when its lease is lost. */
  run(payload: Payload): Effect.Effect<void, PortError>
}

export interface SendOptions {
  /** While a payload with this key waits or runs, another send with it does nothing. */
  readonly key?: string
  readonly delayMs?: number
  /** Higher first; 0 unless told. */
  readonly priority?: number
}

export interface Queue {
  /** With `tx` the payload becomes visible when the transaction commits, or never. */
  send<P>(
    job: Job<P>,
    payload: P,
    options?: SendOptions,
    tx?: Transaction,
  ): Effect.Effect<void, PortError>
  /** Which of these keys of a job wait or run now. */
  held(
    job: Pick<Job<never>, "name">,
    keys: readonly string[],
  ): Effect.Effect<ReadonlySet<string>, PortError>
  /** Works until the Scope closes. The runtime calls it, in worker roles only. */
  consume<P>(job: Job<P>): Effect.Effect<void, PortError, Scope.Scope>
}
