import { Effect } from "effect"
import {
  apiError,
  type Call,
  defineEndpoint,
  freePlan,
  megabyte,
  type WhenStarted,
} from "../../../core/index.ts"
import type { AccountsDeps } from "../deps.ts"
import { deletedMail } from "../mails/compose.ts"
import { nobodysHash } from "../passwords.ts"
import { withoutTwoFactors } from "../two-factor/second-factor.ts"
import { Nothing } from "./ask-for-mail.ts"
import { PasswordAgain } from "./bodies.ts"
import { changeOwn, ownAccountBy } from "./own-password.ts"
import { revokeKeys } from "./reset.ts"

/** No mail is delivered to names below `invalid` (RFC 2606); the id keeps it unique. */
const addressOfDeleted = (id: string) => `deleted-${id.toLowerCase()}@deleted.invalid`

/**
 * The row stays, because entries of the append-only ledger name it; address and password go, keys
 * are revoked, and sessions end.
 */
const deleteAccount = (deps: AccountsDeps, { body, caller, client }: Call<PasswordAgain>) =>
  Effect.gen(function* () {
    const { accounts, audit, clock, deployment, mailer, tokens } = deps
    const own = yield* ownAccountBy(deps, { caller, client, password: body.current_password })
    if (own.is_first)
      return yield* apiError(
        "conflict",
        "The first account belongs to the server and can't be deleted.",
      )
    yield* changeOwn(deps, own, (before, tx) =>
      Effect.gen(function* () {
        const at = new Date(clock.nowMs())
        yield* revokeKeys(deps, own.id, tx)
        yield* tokens.forget(own.id, ["verify", "reset", "email"], tx)
        yield* audit.record({ actor: own.id, action: "account.delete", target: own.id }, tx)
        yield* mailer.send(deletedMail(before, deployment), tx)
        const blank = {
          ...withoutTwoFactors,
          email: addressOfDeleted(own.id),
          password_hash: nobodysHash,
        } as const
        const session_epoch = before.session_epoch + 1
        const state = { role: "user", suspended_at: at, deleted_at: at } as const
        return yield* accounts.change(own.id, { ...blank, ...state, session_epoch }, tx)
      }),
    )
    return { status: 200, json: {} }
  })

export const deleteAccountEndpoint = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint<PasswordAgain>({
    id: "dashboard.delete-account",
    summary:
      "Deletes the account: keys are revoked, sessions end, address and password go. The ledger's entries stay.",
    method: "POST",
    path: "/dashboard/delete-account",
    access: "session",
    body: PasswordAgain,
    maxBodyBytes: megabyte,
    reply: Nothing,
    plan: (call) => Effect.map(started, (deps) => freePlan(deleteAccount(deps, call))),
  })
