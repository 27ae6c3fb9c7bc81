import type { Effect } from "effect"
import type { Json, PortError, Transaction } from "../../../core/index.ts"

/** A change, or a refused attempt at one, as `GET /admin/audit` shows it. */
export interface AuditEntry {
  /**
   * Id of the account that acted; `system` for the server itself, `cli` for the command line,
   * `anonymous` where nobody was signed in.
   */
  readonly actor: string
  /**
   * `key.create|update|revoke`, `account.signup|verify|reset|suspend|unsuspend|grant`,
   * `login.fail`, `admin.deny` ...
   */
  readonly action: string
  /** Id of the account or key; for attempts on neither, what the attempt was on. */
  readonly target: string
  /** The changed fields before and after. Never a secret, a password or a token. */
  readonly before?: Json
  readonly after?: Json
}

/** The append-only log of all changes: who, what, before, after, when. */
export interface Audit {
  /** With `tx`, the record commits together with the change. */
  record(entry: AuditEntry, tx?: Transaction): Effect.Effect<void, PortError>
}
