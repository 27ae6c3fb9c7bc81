import { Effect } from "effect"
import {
  type ApiError,
  apiError,
  type Caller,
  isId,
  type PortError,
  type Transaction,
} from "../../../core/index.ts"
import type { AccountChanges } from "../account-rows.ts"
import { changedFields } from "../changed-fields.ts"
import type { AccountsDeps } from "../deps.ts"
import type { AccountTable } from "../tables.ts"
import { withoutTwoFactors } from "../two-factor/second-factor.ts"

type Failure = ApiError | PortError

/** A change that an admin can make to an account. */
export interface AccountAction {
  /** The `action` of the audit log. */
  readonly name: `account.${string}`
  /** Returns undefined when nothing would change. */
  changes(row: AccountTable, at: Date): AccountChanges | undefined
  /** The message when an admin tries it on their own account. */
  readonly notForOneself?: string
}

export const verify: AccountAction = {
  name: "account.verify",
  changes: (row, at) => (row.verified_at ? undefined : { verified_at: at }),
}

export const suspend: AccountAction = {
  name: "account.suspend",
  changes: (row, at) => (row.suspended_at ? undefined : { suspended_at: at }),
  notForOneself: "Nobody can suspend the own account.",
}

export const unsuspend: AccountAction = {
  name: "account.unsuspend",
  changes: (row) => (row.suspended_at ? { suspended_at: null } : undefined),
}

/** For an owner who has lost the phone and the recovery codes. */
export const endTwoFactor: AccountAction = {
  name: "account.two_factor_end",
  changes: (row) => (row.totp_since ? withoutTwoFactors : undefined),
  notForOneself: "End your own second factor on your account page, with a code.",
}

export const changeRole = (role: AccountTable["role"]): AccountAction => ({
  name: "account.role",
  changes: (row) => (row.role === role ? undefined : { role }),
  notForOneself: "Nobody can change the own role.",
})

export const noSuchAccount = () => apiError("not_found", "There is no such account.")

/**
 * Locks the account and that of the admin, in the order of their ids. The session may be some
 * seconds old, so the role is checked again: a former admin changes nothing, and of two admins who
 * suspend each other at once only one succeeds.
 */
export const lockFor = (
  deps: AccountsDeps,
  admin: string,
  id: string,
  tx: Transaction,
): Effect.Effect<AccountTable, Failure> =>
  Effect.gen(function* () {
    const rows = new Map<string, AccountTable | undefined>()
    for (const one of [...new Set([admin, id])].sort())
      rows.set(one, yield* deps.accounts.lock(one, tx))
    const self = rows.get(admin)
    if (self?.role !== "admin") return yield* apiError("permission_denied")
    if (self.suspended_at) return yield* apiError("account_suspended")
    return rows.get(id) ?? (yield* noSuchAccount())
  })

const shownFields = (row: AccountTable) => ({
  email_verified: row.verified_at !== null,
  suspended: row.suspended_at !== null,
  role: row.role,
  two_factor: row.totp_since !== null,
})

/** Returns the changed account. A change without effect leaves no record. */
export const changeAccount = (
  deps: AccountsDeps,
  caller: Caller,
  id: string,
  action: AccountAction,
): Effect.Effect<AccountTable, Failure> =>
  Effect.gen(function* () {
    const actor = caller.tenant.account
    if (!isId(id)) return yield* noSuchAccount()
    if (action.notForOneself && id === actor)
      return yield* apiError("conflict", action.notForOneself)
    const work = deps.database.transaction((tx) =>
      Effect.gen(function* () {
        const before = yield* lockFor(deps, actor, id, tx)
        const changes = action.changes(before, new Date(deps.clock.nowMs()))
        const after = changes && (yield* deps.accounts.change(id, changes, tx))
        if (!after) return before
        yield* deps.audit.record(
          {
            actor,
            action: action.name,
            target: id,
            ...changedFields(shownFields(before), shownFields(after)),
          },
          tx,
        )
        return after
      }),
    )
    return yield* Effect.uninterruptible(
      Effect.tap(work, () => Effect.sync(() => deps.keyChanges.announce({ account: id }))),
    )
  })
