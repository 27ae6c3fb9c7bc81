import { Effect } from "effect"
import type { Billing, Micros, PortError, Transaction } from "../../core/index.ts"

/** Idempotent: the id of the entry is the account's, so each account gets the credit once. */
export const grantFreeCredit = (
  billing: Billing,
  account: string,
  amountMicros: Micros,
  tx?: Transaction,
): Effect.Effect<void, PortError> =>
  amountMicros === 0n
    ? Effect.void
    : // a credit is positive, so no balance is too low for it
      Effect.catchTag(
        billing.adjust(
          { id: `free-credit:${account}`, account, amountMicros, reason: "Free credit" },
          tx,
        ),
        "BalanceTooLow",
        Effect.die,
      )
