import type { Effect, Scope } from "effect"
import type { Caller, Client } from "../caller.ts"
import type { ApiError } from "../errors.ts"
import type { Json, Strings } from "../json.ts"
import type { Micros } from "../money.ts"
import type { Billing, Settlement } from "../ports/billing.ts"
import type { Endpoint, Reply } from "../ports/endpoint.ts"
import type { Idempotency } from "../ports/idempotency.ts"
import type { Catalogue } from "../services/catalogue.ts"
import type { Clock } from "../services/clock.ts"
import type { Ids } from "../services/ids.ts"
import type { Log } from "../services/log.ts"
import type { UsageByModel } from "../usage.ts"
import type { Meter } from "./meter.ts"

/**
 * What the call path works with. Ports are resolved lazily: the path is made before plugins start.
 */
export interface CallPathDeps {
  readonly billing: () => Billing
  readonly idempotency: () => Idempotency | undefined
  readonly catalogue: Catalogue
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly timeoutMs: number
  /** Waits for the calls that are at the same stage. By default each goes through all of them alone. */
  readonly cohort?: Effect.Effect<void>
  /** The server's, for receipts. */
  readonly version?: string
}

export interface CallInput {
  /** Absent on public endpoints only. */
  readonly caller: Caller | undefined
  readonly body: Json
  /** Stands for a large body in the fingerprint of an `Idempotency-Key`. */
  readonly bodyDigest?: string | undefined
  readonly params?: Strings
  readonly query?: Strings
  readonly requestId: string
  readonly client?: Client | undefined
  /** Begun with the request, which may have had stages before the call; by default a new one. */
  readonly meter?: Meter
  readonly priority: "realtime" | "batch"
  /** 1, or the catalogue's `batchPriceFactor` in a batch. */
  readonly priceFactor: number
  readonly parent?: string
  readonly dryRun?: boolean
  readonly idempotencyKey?: string | undefined
}

export interface Answer {
  readonly reply: Reply
  /** The price of the call; known once it is settled (for a stream, after its last event). */
  cost(): Micros | undefined
  /** `Server-Timing` so far; complete after the last event of a stream. */
  timing(): string
}

/** The one call path, used by HTTP and by the batch worker. */
export interface CallPath {
  /**
   * Settles before the reply is out, for a stream before its end; when the Scope closes early, by
   * what the meter says.
   */
  run(endpoint: Endpoint, input: CallInput): Effect.Effect<Answer, ApiError, Scope.Scope>
  /**
   * For a batch line: the caller commits the settlement with its own rows. Fails with nothing held.
   */
  runUnsettled(
    endpoint: Endpoint,
    input: CallInput,
  ): Effect.Effect<{ readonly reply: Reply; readonly settlement: Settlement }, ApiError>
  /** Authorizes, decodes and plans, and does nothing: what the call would use and cost at worst. */
  check(
    endpoint: Endpoint,
    input: CallInput,
  ): Effect.Effect<{ readonly bound: UsageByModel; readonly costMicros: Micros }, ApiError>
}
