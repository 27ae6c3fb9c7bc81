import { Effect, Schema } from "effect"
import {
  type ApiError,
  apiError,
  type Caller,
  displayRupiah,
  isId,
  type Micros,
  optional,
  type PortError,
  parseRupiah,
  rupiahNumber,
  type Transaction,
} from "../../../core/index.ts"
import type { AccountsDeps } from "../deps.ts"
import { isPlainText } from "../plain-text.ts"
import type { AccountTable } from "../tables.ts"
import { lockFor, noSuchAccount } from "./change-account.ts"

const maxAmountIdr = 1e12
/** Far below the limit of the ledger (bigint). */
export const maxBalanceMicros: Micros = 1_000_000_000_000_000_000n
const maxReasonCharacters = 500

const isAmount = (idr: number) =>
  (/^-?\d{1,13}(\.\d{1,6})?$/.test(String(idr)) && idr !== 0 && Math.abs(idr) <= maxAmountIdr) ||
  `expected an amount in Rp, not 0, with at most 6 decimals, from -${maxAmountIdr} to ${maxAmountIdr}`

/** Why an administrator does something, for the audit log. */
export const Reason = Schema.String.check(
  Schema.makeFilter(
    (text: string) =>
      isPlainText(text, maxReasonCharacters) ||
      `must be 1 to ${maxReasonCharacters} characters, without control or invisible characters`,
  ),
)

export const Grant = Schema.Struct({
  amount_idr: Schema.Finite.check(Schema.makeFilter(isAmount)),
  reason: Reason,
  currency: optional(Schema.Literal("IDR")),
}).annotate({ identifier: "Grant" })
export type Grant = typeof Grant.Type

type Failure = ApiError | PortError

/**
 * Adjusts the balance; `refused` says why it could not. The audit record, with the balance before
 * and after, commits with it.
 */
const move = (
  deps: AccountsDeps,
  actor: string,
  id: string,
  { amount_idr, reason }: Grant,
  tx: Transaction,
): Effect.Effect<{ readonly refused?: string }, PortError> =>
  Effect.gen(function* () {
    const amountMicros = parseRupiah(String(amount_idr))
    const what = { amount_idr, reason: reason.trim() }
    const refuse = (refused: string) =>
      Effect.as(
        deps.audit.record({ actor, action: "account.grant.refuse", target: id, after: what }, tx),
        { refused },
      )
    // grants hold the lock of the account, so that the balance can only fall meanwhile
    const { balanceMicros } = yield* deps.billing.balance(id, tx)
    if (balanceMicros + amountMicros > maxBalanceMicros)
      return yield* refuse(`A balance can't be above ${displayRupiah(maxBalanceMicros)}.`)
    const entry = { id: deps.ids.make("grant_"), account: id, amountMicros, reason: what.reason }
    const isMoved = yield* deps.billing.adjust(entry, tx).pipe(
      Effect.as(true),
      Effect.catchTag("BalanceTooLow", () => Effect.succeed(false)),
    )
    if (!isMoved)
      return yield* refuse("The balance, less what running calls hold, does not cover that.")
    const after = yield* deps.billing.balance(id, tx)
    const before = { balance_idr: rupiahNumber(after.balanceMicros - amountMicros) }
    yield* deps.audit.record(
      {
        actor,
        action: "account.grant",
        target: id,
        before,
        after: { balance_idr: rupiahNumber(after.balanceMicros), ...what, entry: entry.id },
      },
      tx,
    )
    return {}
  })

/** Adds to a balance, or takes from it. A refused grant is recorded, too. */
export const grant = (
  deps: AccountsDeps,
  caller: Caller,
  id: string,
  wanted: Grant,
): Effect.Effect<AccountTable, Failure> =>
  Effect.gen(function* () {
    if (!isId(id)) return yield* noSuchAccount()
    const actor = caller.tenant.account
    const { row, refused } = yield* deps.database.transaction((tx) =>
      Effect.gen(function* () {
        const row = yield* lockFor(deps, actor, id, tx)
        return { row, ...(yield* move(deps, actor, id, wanted, tx)) }
      }),
    )
    return refused === undefined
      ? row
      : yield* apiError("conflict", refused, { param: "amount_idr" })
  })
