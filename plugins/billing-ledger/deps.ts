import type { Clock, Database, Deployment, Log, Signer } from "../../core/index.ts"

/** What the endpoints of this plugin work with. */
export interface LedgerDeps {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly signer: Signer
  readonly deployment: Deployment
}
