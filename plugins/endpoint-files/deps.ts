import type { Clock, Database, FileObserver, Ids, Log, Storage } from "../../core/index.ts"
import type { FileLimits } from "./settings.ts"

/** What all modules of this plugin work with. */
export interface FilesDeps {
  readonly database: Database
  readonly storage: Storage
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly limits: FileLimits
  /** Whom `Files.observe` added; they are called in this order. */
  readonly observers: FileObserver[]
}
