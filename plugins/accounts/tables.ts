import type { ColumnType, Generated } from "kysely"
import type { Locale } from "./mails/locale.ts"

export interface AccountTable {
  readonly id: string
  /** Lower case. */
  readonly email: string
  /** argon2id, in PHC form. */
  readonly password_hash: string
  readonly role: "user" | "admin"
  /** True for one row only: the account of the first boot. */
  readonly is_first: boolean
  readonly verified_at: Date | null
  readonly suspended_at: Date | null
  /** Of the mails to it. */
  readonly locale: Locale
  /** Sessions carry it; a reset of the password raises it, which ends those that were there. */
  readonly session_epoch: number
  readonly created_at: Date
}

/** A token that was mailed. At most one of an account and a purpose is neither used nor voided. */
export interface TokenTable {
  readonly sha256: Buffer
  readonly account_id: string
  readonly purpose: "verify" | "reset"
  readonly created_at: Date
  readonly expires_at: Date
  readonly used_at: Date | null
  /** A newer one took its place. */
  readonly voided_at: Date | null
}

/** What counts toward one rate limit. */
export interface AttemptTable {
  /** SHA-256 of what is limited: addresses and e-mails stay nowhere. */
  readonly bucket: Buffer
  /** Unix ms of the attempts within the window, in the order they came. */
  readonly at_ms: readonly bigint[]
  readonly taken: boolean
  /** From then on nothing of it counts. */
  readonly expires_at: Date
}

export interface KeyTable {
  readonly id: string
  readonly account_id: string
  readonly name: string
  readonly sha256: Buffer
  /** The start of the key, for people to tell keys apart. */
  readonly prefix: string
  readonly mode: "live" | "test"
  readonly scopes: readonly string[]
  readonly rpm: number
  readonly rpd: number
  readonly concurrency: number
  readonly monthly_cap_micros: ColumnType<string | bigint, bigint, bigint>
  readonly created_at: Date
  readonly last_used_at: Date | null
  readonly revoked_at: Date | null
  /** In the order they were made. */
  readonly seq: Generated<string>
  readonly expires_at: ColumnType<Date | null, Date | null | undefined, Date | null>
  /** Made for the web app, for a while. */
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
