import type {
  Clock,
  Database,
  Ids,
  Log,
  Metrics,
  Outbound,
  Queue,
  Secrets,
} from "../../core/index.ts"
import type { Settings } from "./settings.ts"

/** What the modules of this plugin work with. */
export interface WebhookDeps {
  readonly database: Database
  readonly queue: Queue
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly metrics: Metrics
  readonly outbound: Outbound
  readonly secrets: Secrets
  readonly settings: Settings
  readonly random: () => number
}
