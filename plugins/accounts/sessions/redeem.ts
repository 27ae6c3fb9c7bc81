import { Effect } from "effect"
import type { ApiError, PortError, Transaction } from "../../../core/index.ts"
import type { AccountsDeps } from "../deps.ts"
import type { MailPurpose } from "../mails/mail-tokens.ts"
import type { AccountTable } from "../tables.ts"

type Change = (
  before: AccountTable,
  tx: Transaction,
) => Effect.Effect<AccountTable | undefined, PortError>

/** Uses a mailed token up, and changes its account, in one transaction. The account's lock comes before the token's, as where tokens are made. */
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
  // nothing may come between the commit and telling the caches of this process
  return Effect.uninterruptible(
    Effect.tap(changing, (row) =>
      Effect.sync(() => row && keyChanges.announce({ account: row.id })),
    ),
  ).pipe(Effect.flatMap((row) => (row ? Effect.succeed(row) : tokens.refuse(token, purpose))))
}
