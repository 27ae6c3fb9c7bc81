import type { Effect } from "effect"
import type { Tenant } from "../caller.ts"
import type { PortError } from "../errors.ts"
import type { Json } from "../json.ts"
import type { Transaction } from "./transaction.ts"

/**
 * Delivery, retries and signatures are behind it. With `tx` the event exists when the transaction
 * commits, or never.
 */
export interface Webhook {
  emit(tenant: Tenant, event: string, data: Json, tx?: Transaction): Effect.Effect<void, PortError>
}
