import { Effect } from "effect"
import {
  type Call,
  type Client,
  defineEndpoint,
  freePlan,
  megabyte,
  type WhenStarted,
} from "../../../core/index.ts"
import type { AccountsDeps } from "../deps.ts"
import { changedMail } from "../mails/compose.ts"
import { hashPassword } from "../passwords.ts"
import type { AccountTable } from "../tables.ts"
import { withoutBegun } from "../two-factor/second-factor.ts"
import { LoginReply, PasswordAgain, PasswordBody } from "./bodies.ts"
import { changeOwn, ownAccountBy } from "./own-password.ts"
import { showAccount } from "./show-account.ts"

/** The session that takes the place of the one that asked, which has ended with all others. */
const nextSession = (deps: AccountsDeps, row: AccountTable, client: Client | undefined) =>
  Effect.gen(function* () {
    const { token, expiresAt } = yield* deps.sessions.begin(row, client)
    return {
      status: 200,
      headers: { "cache-control": "no-store" },
      json: { token, expires_at: expiresAt, account: yield* showAccount(deps, row) },
    }
  })

const changePassword = (deps: AccountsDeps, { body, caller, client }: Call<PasswordBody>) =>
  Effect.gen(function* () {
    const { accounts, audit, deployment, mailer, tokens } = deps
    const own = yield* ownAccountBy(deps, { caller, client, password: body.current_password })
    const password_hash = yield* hashPassword(body.password)
    const row = yield* changeOwn(deps, own, (before, tx) =>
      Effect.gen(function* () {
        yield* audit.record({ actor: own.id, action: "account.password", target: own.id }, tx)
        // whoever knew the old password may have asked for another address
        yield* tokens.forget(own.id, ["email"], tx)
        yield* mailer.send(changedMail(before, deployment), tx)
        const session_epoch = before.session_epoch + 1
        const changes = { ...withoutBegun(before), password_hash, session_epoch }
        return yield* accounts.change(own.id, changes, tx)
      }),
    )
    return yield* nextSession(deps, row, client)
  })

const endOthers = (deps: AccountsDeps, { body, caller, client }: Call<PasswordAgain>) =>
  Effect.gen(function* () {
    const { accounts, audit } = deps
    const own = yield* ownAccountBy(deps, { caller, client, password: body.current_password })
    const row = yield* changeOwn(deps, own, (before, tx) =>
      Effect.gen(function* () {
        yield* audit.record({ actor: own.id, action: "account.end_sessions", target: own.id }, tx)
        return yield* accounts.change(own.id, { session_epoch: before.session_epoch + 1 }, tx)
      }),
    )
    return yield* nextSession(deps, row, client)
  })

export const passwordEndpoint = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint<PasswordBody>({
    id: "dashboard.password",
    summary:
      "Changes the password, ends all sessions of the account, and begins a new one. Mails a notice.",
    method: "POST",
    path: "/dashboard/password",
    access: "session",
    body: PasswordBody,
    maxBodyBytes: megabyte,
    reply: LoginReply,
    plan: (call) => Effect.map(started, (deps) => freePlan(changePassword(deps, call))),
  })

export const endSessionsEndpoint = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint<PasswordAgain>({
    id: "dashboard.end-sessions",
    summary: "Ends all sessions of the account, and begins a new one in their place.",
    method: "POST",
    path: "/dashboard/end-sessions",
    access: "session",
    body: PasswordAgain,
    maxBodyBytes: megabyte,
    reply: LoginReply,
    plan: (call) => Effect.map(started, (deps) => freePlan(endOthers(deps, call))),
  })
