import type { Catalogue } from "../catalogue.ts"
import type { Ids } from "../ids.ts"
import type { Billing } from "../ports/billing.ts"
import type { Clock } from "../services/clock.ts"
import type { Idempotency } from "../services/idempotency.ts"
import type { Log } from "../services/log.ts"

/** What the call path works with. Ports are asked for late: the path is made before plugins start. */
export interface CallPathParts {
  readonly billing: () => Billing
  readonly idempotency: () => Idempotency | undefined
  readonly catalogue: Catalogue
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly timeoutMs: number
}
