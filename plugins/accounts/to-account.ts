import { Schema } from "effect"
import { type Micros, rupiahNumber } from "../../core/index.ts"
import type { AccountTable } from "./tables.ts"

/** The JSON of an account. */
export const AccountReply = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("account"),
  email: Schema.String,
  role: Schema.Literals(["user", "admin"]),
  email_verified: Schema.Boolean,
  suspended: Schema.Boolean,
  balance_idr: Schema.Finite,
  held_idr: Schema.Finite,
  two_factor: Schema.Boolean.annotate({ description: "Sign-in asks for a code." }),
  low_balance_idr: Schema.NullOr(Schema.Finite).annotate({
    description: "Below this balance a mail is sent; null: none.",
  }),
  created_at: Schema.Int.annotate({ description: "Unix seconds." }),
}).annotate({ identifier: "Account" })
export type AccountReply = typeof AccountReply.Type

export interface Balance {
  readonly balanceMicros: Micros
  readonly heldMicros: Micros
}

/** The columns that the JSON of an account needs: lists never read password hashes. */
export const shownColumns = [
  "id",
  "email",
  "role",
  "verified_at",
  "suspended_at",
  "totp_since",
  "low_balance_micros",
  "created_at",
] as const

export const toAccount = (
  row: Pick<AccountTable, (typeof shownColumns)[number]>,
  { balanceMicros, heldMicros }: Balance,
): AccountReply => ({
  id: row.id,
  object: "account",
  email: row.email,
  role: row.role,
  email_verified: row.verified_at !== null,
  suspended: row.suspended_at !== null,
  balance_idr: rupiahNumber(balanceMicros),
  held_idr: rupiahNumber(heldMicros),
  two_factor: row.totp_since !== null,
  low_balance_idr:
    row.low_balance_micros === null ? null : rupiahNumber(BigInt(row.low_balance_micros)),
  created_at: Math.floor(row.created_at.getTime() / 1000),
})
