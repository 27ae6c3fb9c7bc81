import type {
  Billing,
  Clock,
  Database,
  Deployment,
  Endpoint,
  Ids,
  Log,
  Mailer,
  Secrets,
  Signer,
} from "../../core/index.ts"
import type { AccountRows } from "./account-rows.ts"
import type { Audit } from "./audit/audit.ts"
import type { Background } from "./background.ts"
import type { KeyChanges } from "./key-changes.ts"
import type { KeyRows } from "./key-rows.ts"
import type { LastUsed } from "./last-used.ts"
import type { Limiter } from "./limits/limiter.ts"
import type { MailTokens } from "./mails/mail-tokens.ts"
import type { SessionRows } from "./sessions/session-rows.ts"
import type { Sessions } from "./sessions/sessions.ts"
import type { Settings } from "./settings.ts"

/** The dependencies of the endpoints of this plugin, which exist once it has started. */
export interface AccountsDeps {
  readonly database: Database
  readonly billing: Billing
  readonly signer: Signer
  readonly secrets: Secrets
  readonly mailer: Mailer
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly deployment: Deployment
  readonly accounts: AccountRows
  readonly keys: KeyRows
  /**
   * Announce every change of a key or an account, and every ended session, here, so that the caches
   * of this process drop it.
   */
  readonly keyChanges: KeyChanges
  readonly sessions: Sessions
  readonly sessionRows: SessionRows
  /** When sessions were last seen. */
  readonly lastSeen: LastUsed
  readonly audit: Audit
  readonly limiter: Limiter
  readonly tokens: MailTokens
  readonly background: Background
  readonly settings: Settings
  /** All endpoints of the deployment: a scope is the id of an endpoint whose access is `key`. */
  endpoints(): readonly Endpoint[]
  /** The ids of all models that are served. */
  models(): readonly string[]
}
