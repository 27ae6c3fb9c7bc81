import { Effect, Schema } from "effect"
import {
  type ApiError,
  badQuery,
  firstOf,
  isId,
  type Micros,
  type Page,
  type PortError,
  pageQuery,
  parseRupiah,
  placeOf,
  toList,
  wordQuery,
} from "../../../core/index.ts"
import type { AccountsDeps } from "../deps.ts"
import { textFilter } from "../list-query.ts"
import { type AccountReply, toAccount } from "../to-account.ts"
import {
  type AccountFilter,
  accountStates,
  findAccounts,
  type ListedAccount,
  listAccounts,
} from "./account-list.ts"

const maxQueryCharacters = 200
const maxIds = 100
const idsIn = (text: string): readonly string[] => text.split(",").filter((id) => id !== "")
const pageSize = 500
/** Balances are read one by one: more accounts than this would take too long. */
const maxCompared = 10_000

export const AccountQuery = Schema.Struct({
  ...pageQuery,
  q: textFilter(maxQueryCharacters),
  ids: Schema.optionalKey(
    Schema.String.check(
      Schema.makeFilter((text: string) =>
        idsIn(text).every(isId) && idsIn(text).length <= maxIds
          ? true
          : `must be at most ${maxIds} ids with commas between`,
      ),
    ).annotate({
      description: `Ids with commas between, at most ${maxIds}: these accounts, other filters aside. What is no account's is left out.`,
    }),
  ),
  state: wordQuery(accountStates),
  balance_below: Schema.optionalKey(
    Schema.String.check(
      Schema.makeFilter(
        (text: string) =>
          /^(-?\d{1,13}(\.\d{1,6})?)?$/.test(text) ||
          "must be an amount in Rp of at most 13 digits, with at most 6 decimals",
      ),
    ).annotate({
      description: `In Rp: only accounts whose balance is below it. At most ${maxCompared} accounts are compared.`,
    }),
  ),
})
export type AccountQuery = typeof AccountQuery.Type

export const shown = (
  deps: AccountsDeps,
  row: ListedAccount,
): Effect.Effect<AccountReply, PortError> =>
  Effect.map(deps.billing.balance(row.id), (balance) => toAccount(row, balance))

interface Wanted extends AccountFilter {
  readonly count: number
  readonly below: Micros
}

const withBalanceBelow = (
  deps: AccountsDeps,
  { count, below, ...filter }: Wanted,
  start: string | undefined,
): Effect.Effect<readonly AccountReply[], ApiError | PortError> =>
  Effect.gen(function* () {
    const found: AccountReply[] = []
    let after = start
    for (let compared = 0; compared < maxCompared; compared += pageSize) {
      const rows = yield* listAccounts(deps.database, filter, pageSize, after)
      const balances = yield* Effect.forEach(rows, ({ id }) => deps.billing.balance(id), {
        concurrency: 4,
      })
      for (const [index, row] of rows.entries()) {
        const balance = balances[index]
        if (balance && balance.balanceMicros < below) found.push(toAccount(row, balance))
        if (found.length === count) return found
      }
      if (rows.length < pageSize) return found
      after = rows.at(-1)?.id
    }
    return yield* badQuery(
      "balance_below",
      `compares at most ${maxCompared} accounts: narrow them by q or state`,
    )
  })

/** The reply of `GET /admin/accounts`. */
export const accountPage = (deps: AccountsDeps, query: AccountQuery, wanted: Page = query) =>
  Effect.gen(function* () {
    const { q = "", ids = "", state, balance_below = "" } = query
    if (ids !== "") {
      const rows = yield* findAccounts(deps.database, idsIn(ids))
      const data = yield* Effect.forEach(rows, (row) => shown(deps, row), { concurrency: 4 })
      return { status: 200, json: toList(data, false) }
    }
    const after = yield* placeOf(wanted.after, (id) =>
      Effect.map(deps.accounts.byId(id), (row) => row?.id),
    )
    const [named] = q === "" ? [] : yield* findAccounts(deps.database, [q])
    if (named)
      return {
        status: 200,
        json: toList(after === undefined ? [yield* shown(deps, named)] : [], false),
      }
    const filter = { q: q || undefined, state }
    const count = wanted.limit + 1
    if (balance_below !== "") {
      const below = parseRupiah(balance_below)
      const found = yield* withBalanceBelow(deps, { ...filter, count, below }, after)
      const { rows, hasMore } = firstOf(found, wanted)
      return { status: 200, json: toList(rows, hasMore) }
    }
    const { rows, hasMore } = firstOf(
      yield* listAccounts(deps.database, filter, count, after),
      wanted,
    )
    const data = yield* Effect.forEach(rows, (row) => shown(deps, row), { concurrency: 4 })
    return { status: 200, json: toList(data, hasMore) }
  })
