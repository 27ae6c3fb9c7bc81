import type { ColumnType, Generated } from "kysely"
import type { Locale } from "./mails/locale.ts"

export interface AccountTable {
  readonly id: string
  /** Lower case. */
  readonly email: string
  /** argon2id, in PHC form. */
  readonly password_hash: string
  readonly role: "user" | "admin"
  /** True for one row: the account of the first boot. */
  readonly is_first: boolean
  readonly verified_at: Date | null
  readonly suspended_at: Date | null
  /** Language of mails to the account. */
  readonly locale: Locale
  /** Part of session tokens; a password reset increments it, which ends all earlier sessions. */
  readonly session_epoch: number
  readonly created_at: Date
}

/** A mailed token. An account has at most one for each purpose that is neither used nor voided. */
export interface TokenTable {
  readonly sha256: Buffer
  readonly account_id: string
  readonly purpose: "verify" | "reset"
  readonly created_at: Date
  readonly expires_at: Date
  readonly used_at: Date | null
  /** Set when a newer token replaced it. */
  readonly voided_at: Date | null
}

/** The attempts that count toward a rate limit. */
export interface AttemptTable {
  /** SHA-256 of the kind and subject of the limit: addresses and e-mails are not stored. */
  readonly bucket: Buffer
  /** Unix ms of the attempts within the window, in order. */
  readonly at_ms: readonly bigint[]
  readonly taken: boolean
  /** From then on none of the attempts counts. */
  readonly expires_at: Date
}

export interface KeyTable {
  readonly id: string
  readonly account_id: string
  readonly name: string
  readonly sha256: Buffer
  /** The first characters of the key, for display. */
  readonly prefix: string
  readonly mode: "live" | "test"
  readonly scopes: readonly string[]
  readonly rpm: number
  readonly rpd: number
  readonly concurrency: number
  readonly monthly_cap_micros: ColumnType<string | bigint, bigint, bigint>
  readonly body_mb: Generated<number>
  readonly created_at: Date
  readonly last_used_at: Date | null
  readonly revoked_at: Date | null
  /** Increases in the order in which keys are made. */
  readonly seq: Generated<string>
  readonly expires_at: ColumnType<Date | null, Date | null | undefined, Date | null>
  /** A temporary key of the web app. */
  readonly playground: Generated<boolean>
}

export interface AccountsTables {
  readonly accounts_account: Omit<AccountTable, "locale" | "session_epoch"> & {
    readonly locale: Generated<Locale>
    readonly session_epoch: Generated<number>
  }
  readonly accounts_token: TokenTable
  readonly accounts_attempt: AttemptTable
  readonly accounts_key: KeyTable
}
