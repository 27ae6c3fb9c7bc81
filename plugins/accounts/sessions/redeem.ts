import { Effect } from "effect"
import type { ApiError, PortError, Transaction } from "../../../core/index.ts"
import type { AccountsDeps } from "../deps.ts"
import type { MailPurpose } from "../mails/mail-tokens.ts"
import type { AccountTable } from "../tables.ts"

type Change = (
  before: AccountTable,
  tx: Transaction,
) => Effect.Effect<AccountTable | undefined, PortError>

/**
 * Uses a mailed token and changes its account in one transaction. Locks the account before the
 * token, as `issue` does.
 */
export const redeem = (
  deps: AccountsDeps,
  token: string,
  purpose: MailPurpose,
  account: string,
  change: Change,
): Effect.Effect<AccountTable, ApiError | PortError> => {
  const { accounts, database, keyChanges, tokens } = deps
  const changing = database.transaction((tx) =>
    Effect.gen(function* () {
      const before = yield* accounts.lock(account, tx)
      const used = yield* tokens.use(token, purpose, tx)
      return before && used === account ? yield* change(before, tx) : undefined
    }),
  )
  // uninterruptible, so that the caches of this process are invalidated after every commit
  return Effect.uninterruptible(
    Effect.tap(changing, (row) =>
      Effect.sync(() => row && keyChanges.announce({ account: row.id })),
    ),
  ).pipe(Effect.flatMap((row) => (row ? Effect.succeed(row) : tokens.refuse(token, purpose))))
}
