import type { Billing, Clock, Database, Deployment, Endpoint, Ids, Log, Mailer, Signer } from "../../core/index.ts"
import type { AccountRows } from "./account-rows.ts"
import type { Audit } from "./audit/audit.ts"
import type { KeyRows } from "./key-rows.ts"
import type { Settings } from "./settings.ts"

/** What the endpoints of this plugin work with, once it has started. */
export interface AccountsHouse {
  readonly database: Database
  readonly billing: Billing
  readonly signer: Signer
  readonly mailer: Mailer
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly deployment: Deployment
  readonly accounts: AccountRows
  readonly keys: KeyRows
  readonly audit: Audit
  readonly settings: Settings
  /** All routes of the deployment: a scope is the id of one whose access is `key`. */
  endpoints(): readonly Endpoint[]
}

/** Endpoints are registered before anything has started, so they ask for the house when they are called. */
export type OpenHouse = () => AccountsHouse
