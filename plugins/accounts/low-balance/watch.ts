import { Effect, type Scope } from "effect"
import { sql } from "kysely"
import { displayRupiah, type PortError, repeat } from "../../../core/index.ts"
import type { AccountsDeps } from "../deps.ts"
import { lowBalanceMail } from "../mails/compose.ts"
import type { AccountsTables, AccountTable } from "../tables.ts"

const everyMs = 60_000
/** Batches spend up to a day after the call that made them. */
const activeMs = 25 * 3_600_000
const pageSize = 500

type Watched = Pick<AccountTable, "id" | "low_balance_micros" | "low_balance_mailed_at">

/** Accounts that asked for a mail, have spent lately or were mailed already. */
const watched = ({ clock, database }: AccountsDeps, after: string) =>
  database.run(() =>
    database
      .queries<AccountsTables>()
      .selectFrom("accounts_account as a")
      .select(["id", "low_balance_micros", "low_balance_mailed_at"])
      .where("low_balance_micros", "is not", null)
      .where("id", ">", after)
      .where("verified_at", "is not", null)
      .where("deleted_at", "is", null)
      .where(
        sql<boolean>`(low_balance_mailed_at IS NOT NULL OR EXISTS (
          SELECT FROM accounts_key k WHERE k.account_id = a.id AND k.last_used_at > ${new Date(clock.nowMs() - activeMs)}))`,
      )
      .orderBy("id")
      .limit(pageSize)
      .execute(),
  )

/** Once for each time that the balance falls: the row decides between servers. */
const mail = (deps: AccountsDeps, { id }: Watched, balance: string) =>
  deps.database.transaction((tx) =>
    Effect.gen(function* () {
      const row = yield* deps.accounts.lock(id, tx)
      if (!row || row.low_balance_mailed_at || row.low_balance_micros === null) return false
      const threshold = displayRupiah(BigInt(row.low_balance_micros))
      const now = new Date(deps.clock.nowMs())
      yield* deps.accounts.change(id, { low_balance_mailed_at: now }, tx)
      yield* deps.mailer.send(lowBalanceMail(row, deps.deployment, { balance, threshold }), tx)
      return true
    }),
  )

const forget = ({ database }: AccountsDeps, { id }: Watched) =>
  database.run(() =>
    database
      .queries<AccountsTables>()
      .updateTable("accounts_account")
      .set({ low_balance_mailed_at: null })
      .where("id", "=", id)
      .execute(),
  )

/** States: above -> below (one mail) -> above (after a top-up). Returns whether it mailed. */
const look = (deps: AccountsDeps, one: Watched): Effect.Effect<boolean, PortError> =>
  Effect.gen(function* () {
    const { balanceMicros } = yield* deps.billing.balance(one.id)
    const isBelow = balanceMicros < BigInt(one.low_balance_micros ?? 0)
    if (isBelow && !one.low_balance_mailed_at)
      return yield* mail(deps, one, displayRupiah(balanceMicros))
    if (!isBelow && one.low_balance_mailed_at) yield* forget(deps, one)
    return false
  })

/** Looks at the balances of all who asked; returns the number of mails. */
export const mailLowBalances = (deps: AccountsDeps): Effect.Effect<number, PortError> =>
  Effect.gen(function* () {
    let mails = 0
    let after = ""
    for (;;) {
      const rows = yield* watched(deps, after)
      const mailed = yield* Effect.forEach(rows, (row) => look(deps, row), { concurrency: 4 })
      mails += mailed.filter(Boolean).length
      const last = rows.at(-1)
      if (!last || rows.length < pageSize) return mails
      after = last.id
    }
  })

/** Every minute, on every server of a deployment. */
export const keepMailing = (deps: AccountsDeps): Effect.Effect<void, never, Scope.Scope> =>
  repeat(
    deps.log,
    {
      event: "account.low_balance_failed",
      message: "the balances of accounts that asked for a mail could not be read",
      everyMs,
      isDelayed: true,
    },
    mailLowBalances(deps),
  )
