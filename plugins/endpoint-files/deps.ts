import type { Clock, Database, Ids, Log, Storage } from "../../core/index.ts"
import type { FileLimits } from "./settings.ts"

/** What everything here works with. */
export interface FilesDeps {
  readonly database: Database
  readonly storage: Storage
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly limits: FileLimits
}
