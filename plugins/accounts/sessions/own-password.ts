import { Effect } from "effect"
import {
  type ApiError,
  apiError,
  type Caller,
  type Client,
  type PortError,
  type Transaction,
} from "../../../core/index.ts"
import type { AccountsDeps } from "../deps.ts"
import { loginLimits } from "../limits/limits.ts"
import { refuseOverLimit } from "../limits/refuse-over-limit.ts"
import { isPassword } from "../passwords.ts"
import type { AccountTable } from "../tables.ts"
import { ownAccount } from "./show-account.ts"

const tooMany = "Too many wrong passwords. Try again in a minute."

/** Who asks: the session, and the password that was asked again. */
export interface Asked {
  readonly caller: Caller | undefined
  readonly client: Client | undefined
  readonly password: string
}

/**
 * Returns the session's account if the password is its own. Wrong ones count toward the limits of
 * sign-in. A wrong one is 400 and no 401, which would end the session.
 */
export const ownAccountBy = (
  deps: AccountsDeps,
  { caller, client, password }: Asked,
): Effect.Effect<AccountTable, ApiError | PortError> =>
  Effect.gen(function* () {
    const row = yield* ownAccount(deps, caller)
    const limits = loginLimits(row.email, client)
    yield* refuseOverLimit(deps.limiter.peek(limits), tooMany)
    if (yield* isPassword(row.password_hash, password)) {
      yield* refuseOverLimit(deps.limiter.peek(limits), tooMany)
      return row
    }
    yield* refuseOverLimit(deps.limiter.take(limits), tooMany)
    yield* deps.audit.record({ actor: row.id, action: "password.fail", target: row.id })
    return yield* apiError("invalid_request_error", "current_password: is wrong", {
      param: "current_password",
    })
  })

/**
 * Changes an account whose password was just checked; refused when the password has changed since.
 * Uninterruptible, so that the caches are invalidated after every commit.
 */
export const changeOwn = (
  deps: AccountsDeps,
  checked: AccountTable,
  work: (
    before: AccountTable,
    tx: Transaction,
  ) => Effect.Effect<AccountTable | undefined, ApiError | PortError>,
): Effect.Effect<AccountTable, ApiError | PortError> => {
  const changing = deps.database.transaction((tx) =>
    Effect.gen(function* () {
      const before = yield* deps.accounts.lock(checked.id, tx)
      const isSame =
        before?.password_hash === checked.password_hash &&
        before.session_epoch === checked.session_epoch
      const after = before && isSame ? yield* work(before, tx) : undefined
      return after ?? (yield* apiError("conflict", "The account was changed meanwhile. Try again."))
    }),
  )
  return Effect.uninterruptible(
    Effect.tap(changing, ({ id }) => Effect.sync(() => deps.keyChanges.announce({ account: id }))),
  )
}
