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
  /** Its owner deleted it: the row stays for the ledger, without address and password. */
  readonly deleted_at: Date | null
  /** Encrypted. Counts only once `totp_since` is set. */
  readonly totp_secret: string | null
  /** Since then sign-in asks for a code. */
  readonly totp_since: Date | null
  /** The newest step (30 s) whose code was used. */
  readonly totp_last_step: string | null
  /** SHA-256 of the recovery codes that are left. */
  readonly recovery_sha256: readonly Buffer[]
  /** Below this balance its owner gets a mail; null: none. */
  readonly low_balance_micros: string | null
  /** When that mail was sent; null again once the balance is above it. */
  readonly low_balance_mailed_at: Date | null
}

/** A mailed token. An account has at most one for each purpose that is neither used nor voided. */
export interface TokenTable {
  readonly sha256: Buffer
  readonly account_id: string
  readonly purpose: "verify" | "reset" | "email"
  /** The new address, for the purpose `email`. */
  readonly email: string | null
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
  /** The models that it may use; null: all. */
  readonly models: ColumnType<
    readonly string[] | null,
    readonly string[] | null | undefined,
    readonly string[] | null
  >
  /** A temporary key of the web app. */
  readonly playground: Generated<boolean>
  /** The session of an administrator who sees the account: the key reads, and goes with it. */
  readonly session_id: ColumnType<string | null, string | null | undefined, never>
}

/** An open session, or one that its epoch has ended. */
export interface SessionTable {
  readonly id: string
  readonly account_id: string
  /** The account's `session_epoch` when it began. */
  readonly epoch: number
  readonly created_at: Date
  readonly last_seen_at: Date
  readonly expires_at: Date
  /** `Firefox 128`, `curl`; null: unknown. */
  readonly browser: string | null
  readonly os: string | null
  /** Where it began. */
  readonly address: string | null
  /** An administrator who sees the account, and can change nothing. */
  readonly actor_id: string | null
  /** The administrator's own session, in which that began. */
  readonly parent_id: string | null
}

/** A payment that was booked. */
export interface TopUpTable {
  /** The payment's id at the provider. */
  readonly id: string
  readonly account_id: string
  readonly amount_micros: ColumnType<string, bigint, never>
  readonly created_at: Date
}

/** Columns that a new account doesn't give. */
type Later = Pick<
  AccountTable,
  | "totp_secret"
  | "totp_since"
  | "totp_last_step"
  | "recovery_sha256"
  | "low_balance_micros"
  | "low_balance_mailed_at"
>
type Columns<Row> = { readonly [Name in keyof Row]: ColumnType<Row[Name], Row[Name] | undefined> }

export interface AccountsTables {
  readonly accounts_account: Omit<
    AccountTable,
    "locale" | "session_epoch" | "deleted_at" | keyof Later
  > &
    Columns<Later> & {
      readonly deleted_at: ColumnType<Date | null, Date | null | undefined, Date | null>
      readonly locale: Generated<Locale>
      readonly session_epoch: Generated<number>
    }
  readonly accounts_token: TokenTable
  readonly accounts_attempt: AttemptTable
  readonly accounts_key: KeyTable
  readonly accounts_top_up: TopUpTable
  readonly accounts_session: SessionTable
}
