import { Effect } from "effect"
import {
  type Call,
  defineEndpoint,
  freePlan,
  megabyte,
  type PortError,
  type Transaction,
  type WhenStarted,
} from "../../../core/index.ts"
import type { AccountsDeps } from "../deps.ts"
import { revokeRow } from "../keys/record-key.ts"
import { changedMail } from "../mails/compose.ts"
import { hashPassword } from "../passwords.ts"
import type { AccountsTables, AccountTable } from "../tables.ts"
import { AccountReply } from "../to-account.ts"
import { withoutBegun, withoutTwoFactors } from "../two-factor/second-factor.ts"
import { ResetBody } from "./bodies.ts"
import { redeem } from "./redeem.ts"
import { showAccount } from "./show-account.ts"

/**
 * Somebody who signed up with a foreign address may have made keys; once its owner takes the
 * account over, these must not spend the owner's money.
 */
export const revokeKeys = (
  deps: AccountsDeps,
  account: string,
  tx: Transaction,
): Effect.Effect<void, PortError> =>
  Effect.gen(function* () {
    const keys = deps.database
      .queries<AccountsTables>(tx)
      .selectFrom("accounts_key")
      .selectAll()
      .where("account_id", "=", account)
      .where("revoked_at", "is", null)
    const rows = yield* deps.database.run(() => keys.forUpdate().execute())
    yield* Effect.forEach(rows, (row) => revokeRow(deps, account, row, tx), { discard: true })
  })

/**
 * The link was sent to the address of the account, so using it verifies the address, too. Keys and a
 * second factor from before that may be a stranger's.
 */
const takeOver = (
  deps: AccountsDeps,
  before: AccountTable,
  password_hash: string,
  tx: Transaction,
) =>
  Effect.gen(function* () {
    const { accounts, audit, clock, deployment, mailer, tokens } = deps
    // whoever knew the old password may have asked for another address
    yield* tokens.forget(before.id, ["email"], tx)
    if (!before.verified_at) yield* revokeKeys(deps, before.id, tx)
    const changes = {
      ...(before.verified_at ? withoutBegun(before) : withoutTwoFactors),
      password_hash,
      session_epoch: before.session_epoch + 1,
      verified_at: before.verified_at ?? new Date(clock.nowMs()),
    }
    yield* audit.record(
      {
        actor: before.id,
        action: "account.reset",
        target: before.id,
        before: { email_verified: before.verified_at !== null },
        after: { email_verified: true },
      },
      tx,
    )
    yield* mailer.send(changedMail(before, deployment), tx)
    return yield* accounts.change(before.id, changes, tx)
  })

const reset = (deps: AccountsDeps, { body }: Call<ResetBody>) =>
  Effect.gen(function* () {
    // hashing is expensive, so the token is checked first
    const account = yield* deps.tokens.find(body.token, "reset")
    const password_hash = yield* hashPassword(body.password)
    const row = yield* redeem(deps, body.token, "reset", account, (before, tx) =>
      takeOver(deps, before, password_hash, tx),
    )
    return { status: 200, json: yield* showAccount(deps, row) }
  })

export const resetEndpoint = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint<ResetBody>({
    id: "dashboard.reset",
    summary:
      "Sets a new password with the token that was mailed, and ends all sessions of the account.",
    method: "POST",
    path: "/dashboard/reset",
    access: "public",
    body: ResetBody,
    maxBodyBytes: megabyte,
    reply: AccountReply,
    plan: (call) => Effect.map(started, (deps) => freePlan(reset(deps, call))),
  })
