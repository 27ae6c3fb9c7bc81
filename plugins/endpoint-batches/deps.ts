import type {
  Billing,
  CallPath,
  Catalogue,
  Clock,
  Database,
  Endpoint,
  Files,
  Identity,
  Ids,
  Log,
  Metrics,
  Storage,
  Webhook,
} from "../../core/index.ts"
import type { Cancels } from "./cancels.ts"
import type { BatchLimits } from "./settings.ts"

/** What the plugin is made of. */
export interface BatchDeps {
  readonly database: Database
  readonly storage: Storage
  readonly files: Files
  readonly billing: Billing
  readonly identity: Identity
  readonly callPath: CallPath
  readonly catalogue: Catalogue
  readonly webhook: Webhook
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly metrics: Metrics
  /** The endpoints that a batch may target, by path. */
  readonly targets: ReadonlyMap<string, Endpoint>
  readonly limits: BatchLimits
  readonly cancels: Cancels
}
