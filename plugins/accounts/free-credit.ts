import { Effect } from "effect"
import type { Billing, Micros, PortError, Transaction } from "../../core/index.ts"

/** The id makes it happen once for an account, however often it is asked for. */
export const grantFreeCredit = (
  billing: Billing,
  account: string,
  amountMicros: Micros,
  tx?: Transaction,
): Effect.Effect<void, PortError> =>
  amountMicros === 0n
    ? Effect.void
    : // a credit is above zero, so no balance is too low for it
      Effect.catchTag(
        billing.adjust(
          { id: `free-credit:${account}`, account, amountMicros, reason: "Free credit" },
          tx,
        ),
        "BalanceTooLow",
        Effect.die,
      )
