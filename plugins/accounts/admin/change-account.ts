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

type Failure = ApiError | PortError

/** One thing that an admin does to an account. */
export interface AccountAction {
  /** As the audit log shows it. */
  readonly name: `account.${string}`
  /** Undefined when it is so already. */
  changes(row: AccountTable, at: Date): AccountChanges | undefined
  /** Why nobody may do it to the own account. */
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

export const changeRole = (role: AccountTable["role"]): AccountAction => ({
  name: "account.role",
  changes: (row) => (row.role === role ? undefined : { role }),
  notForOneself: "Nobody can change the own role.",
})

export const noSuchAccount = () => apiError("not_found", "There is no such account.")

/**
 * Locks the account and the admin's own one, in one order for all. The session may be some seconds behind: whoever is no admin any more changes nothing,
 * and two admins who suspend each other at once don't both succeed.
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
})

/** The account as it is after that. What is so already changes nothing, and leaves no record. */
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
