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
  created_at: Schema.Int.annotate({ description: "Unix seconds." }),
}).annotate({ identifier: "Account" })
export type AccountReply = typeof AccountReply.Type

export interface Balance {
  readonly balanceMicros: Micros
  readonly heldMicros: Micros
}

export const toAccount = (
  row: Pick<AccountTable, "id" | "email" | "role" | "verified_at" | "suspended_at" | "created_at">,
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
  created_at: Math.floor(row.created_at.getTime() / 1000),
})
