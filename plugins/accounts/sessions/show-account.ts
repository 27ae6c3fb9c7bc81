import { Effect } from "effect"
import { apiError, type Caller, type PortError } from "../../../core/index.ts"
import type { AccountsDeps } from "../deps.ts"
import type { AccountTable } from "../tables.ts"
import { type AccountReply, toAccount } from "../to-account.ts"

export const showAccount = (
  { billing }: AccountsDeps,
  row: AccountTable,
): Effect.Effect<AccountReply, PortError> =>
  Effect.map(billing.balance(row.id), (balance) => toAccount(row, balance))

/** Returns the account of a session; fails when it is gone since the session was checked. */
export const ownAccount = ({ accounts }: AccountsDeps, caller: Caller | undefined) =>
  Effect.flatMap(accounts.byId(caller?.tenant.account ?? ""), (row) =>
    row ? Effect.succeed(row) : Effect.fail(apiError("authentication_error")),
  )
