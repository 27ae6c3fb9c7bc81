import type { Clock, Database, Log } from "../../core/index.ts"
import type { Settings } from "./settings.ts"

/** What all modules of this plugin work with. */
export interface RetrievalDeps {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly settings: Settings
}
