import type { Effect } from "effect"
import type { Tenant } from "../caller.ts"
import type { PortError } from "../errors.ts"
import type { Json } from "../json.ts"

export interface StoredReply {
  readonly status: number
  readonly json: Json
  /** Id of the call that produced the reply. */
  readonly callId?: string | undefined
}

/**
 * `new`: run, then `finish` or `forget`. `done`: replay this reply. `running`: the first request
 * has not ended; unless its server renews the lease, the key is free in `leaseLeftMs` (1 to
 * 15,000). `mismatch`: the key was used with another body.
 */
export type IdempotencyState =
  | { readonly state: "new" }
  | { readonly state: "done"; readonly reply: StoredReply }
  | { readonly state: "running"; readonly leaseLeftMs: number }
  | { readonly state: "mismatch" }

/**
 * Behind `Idempotency-Key`, for 24 h. States of a key: new -> running -> done; running -> new
 * (failed, or its lease of 15 s ended: a server that runs renews it).
 */
export interface Idempotency {
  /** `fingerprint` is a hash of endpoint and body. */
  begin(
    tenant: Tenant,
    key: string,
    fingerprint: string,
  ): Effect.Effect<IdempotencyState, PortError>
  finish(tenant: Tenant, key: string, reply: StoredReply): Effect.Effect<void, PortError>
  /** The request failed: the key may be used again. */
  forget(tenant: Tenant, key: string): Effect.Effect<void, PortError>
}
