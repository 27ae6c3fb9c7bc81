import type { ColumnType } from "kysely"

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
  readonly created_at: Date
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
}

export interface AccountsTables {
  readonly accounts_account: AccountTable
  readonly accounts_key: KeyTable
}
