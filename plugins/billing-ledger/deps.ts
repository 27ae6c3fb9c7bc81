import type { Effect } from "effect"
import type { Clock, Database, Deployment, Log, PortError, Signer } from "../../core/index.ts"

/** What the endpoints of this plugin work with. */
export interface LedgerDeps {
  readonly database: Database
  readonly clock: Clock
  readonly log: Log
  readonly signer: Signer
  readonly deployment: Deployment
  /** Reports first write down what is counted in this process. */
  readonly flushRefused: Effect.Effect<void, PortError>
  /** Ends when the database has what this process has settled. */
  readonly drained: Effect.Effect<void>
}
