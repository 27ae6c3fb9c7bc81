import type { Effect, Schema, Scope } from "effect"
import type { PortError } from "../errors.ts"
import type { Json } from "../json.ts"
import type { Transaction } from "./transaction.ts"

/**
 * Does one kind of background work: a value, like an endpoint. A job is the piece of work that was
 * sent to it.
 * At least once: a job whose worker dies is run again after `leaseMs`, so `run` must be idempotent.
 * States of a job: waiting -> leased -> done | waiting (failed, after a backoff) | dead (failed
 * `attempts` times).
 */
export interface JobHandler<Job = Json> {
  readonly name: string
  readonly codec: Schema.Codec<Job, Json>
  /** The number of jobs that one process runs at once. */
  readonly concurrency: number
  readonly leaseMs: number
  readonly attempts: number
  /** Interrupted when the job's lease is lost. */
  run(job: Job): Effect.Effect<void, PortError>
}

export interface SendOptions {
  /** While a job with this key waits or runs, another send with it does nothing. */
  readonly key?: string
  readonly delayMs?: number
  /** Higher first; 0 by default. */
  readonly priority?: number
}

export interface Queue {
  /** With `tx` the job becomes visible when the transaction commits, or never. */
  send<Job>(
    handler: JobHandler<Job>,
    job: Job,
    options?: SendOptions,
    tx?: Transaction,
  ): Effect.Effect<void, PortError>
  /** Returns those of `keys` whose job waits or runs now. */
  held(
    handler: Pick<JobHandler<never>, "name">,
    keys: readonly string[],
  ): Effect.Effect<ReadonlySet<string>, PortError>
  /** Runs jobs until the Scope closes. The runtime calls it, in worker roles only. */
  consume<Job>(handler: JobHandler<Job>): Effect.Effect<void, PortError, Scope.Scope>
}
