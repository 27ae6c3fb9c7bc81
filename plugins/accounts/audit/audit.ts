import type { Effect } from "effect"
import type { Json, PortError, Transaction } from "../../../core/index.ts"

/** One change, or an attempt at one, as `GET /admin/audit` shows it. */
export interface AuditEntry {
  /** Account id of who did it; `system` for the server itself, `cli` for the command line, `anonymous` where nobody was signed in. */
  readonly actor: string
  /** `key.create|update|revoke`, `account.signup|verify|reset|suspend|unsuspend|grant`, `login.fail`, `admin.deny` ... */
  readonly action: string
  /** Id of the account or key; where there is none, what was aimed at. */
  readonly target: string
  /** What of it was so before, and is so after. Never a secret, a password or a token. */
  readonly before?: Json
  readonly after?: Json
}

/** The append-only record of every change: who, what, before, after, when. */
export interface Audit {
  /** With `tx` the record commits with the change itself. */
  record(entry: AuditEntry, tx?: Transaction): Effect.Effect<void, PortError>
}
