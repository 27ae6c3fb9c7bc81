import { Effect } from "effect"
import {
  type Call,
  defineEndpoint,
  freePlan,
  megabyte,
  type Transaction,
  type WhenStarted,
} from "../../../core/index.ts"
import type { NewAccount } from "../account-rows.ts"
import type { AccountsDeps } from "../deps.ts"
import { grantFreeCredit } from "../free-credit.ts"
import { mailboxLimit, signupLimits } from "../limits/limits.ts"
import { refuseOverLimit } from "../limits/refuse-over-limit.ts"
import { registeredMail, tokenMail } from "../mails/compose.ts"
import { chooseLocale } from "../mails/locale.ts"
import { hashPassword } from "../passwords.ts"
import { amountOf } from "../settings.ts"
import type { AccountTable } from "../tables.ts"
import { AccountReply, toAccount } from "../to-account.ts"
import { withoutTwoFactors } from "../two-factor/second-factor.ts"
import { emailOf, SignupBody } from "./bodies.ts"

/** Grants the credit of a new account and mails the link. */
const welcome = (deps: AccountsDeps, row: AccountTable, tx: Transaction) =>
  Effect.gen(function* () {
    const { audit, billing, deployment, mailer, settings, tokens } = deps
    yield* grantFreeCredit(billing, row.id, amountOf(settings.freeCreditIdr), tx)
    const token = yield* tokens.issue(row.id, "verify", tx)
    yield* mailer.send(tokenMail(row, deployment, "verify", token), tx)
    yield* audit.record(
      {
        actor: row.id,
        action: "account.signup",
        target: row.id,
        after: { email: row.email, locale: row.locale },
      },
      tx,
    )
  })

/** Leaves the existing account as it is; mails its owner, within limits. */
const remind = (deps: AccountsDeps, email: string, tx: Transaction) =>
  Effect.gen(function* () {
    const { accounts, audit, deployment, limiter, mailer, tokens } = deps
    const found = yield* accounts.byEmail(email, tx)
    const row = found && (yield* accounts.lock(found.id, tx))
    if (!row) return
    const mayMail =
      (yield* limiter.takeIn(
        mailboxLimit(row.verified_at ? "registered" : "verify", email),
        tx,
      )) === 0
    if (mayMail && row.verified_at) yield* mailer.send(registeredMail(row, deployment), tx)
    else if (mayMail)
      yield* mailer.send(
        tokenMail(row, deployment, "verify", yield* tokens.issue(row.id, "verify", tx)),
        tx,
      )
    yield* audit.record({ actor: "anonymous", action: "account.signup_again", target: row.id }, tx)
  })

/**
 * The reply has the same form, and takes the same time, whether the address has an account or not.
 */
const signUp = (deps: AccountsDeps, { body, client }: Call<SignupBody>) =>
  Effect.gen(function* () {
    const { accounts, clock, database, ids, limiter, settings } = deps
    yield* refuseOverLimit(
      limiter.take(signupLimits(client)),
      "Too many sign-ups from this address. Try again in a minute.",
    )
    const email = emailOf(body)
    const password_hash = yield* hashPassword(body.password)
    const locale = chooseLocale(client?.languages, settings.locale)
    const blank = {
      ...withoutTwoFactors,
      low_balance_micros: null,
      low_balance_mailed_at: null,
      role: "user",
      is_first: false,
      verified_at: null,
      suspended_at: null,
      session_epoch: 1,
      deleted_at: null,
    } as const
    const row = {
      ...blank,
      id: ids.make("acct_"),
      email,
      password_hash,
      locale,
      created_at: new Date(clock.nowMs()),
    } satisfies NewAccount
    yield* database.transaction((tx) =>
      Effect.flatMap(accounts.insert(row, tx), (isNew) =>
        isNew ? welcome(deps, row, tx) : remind(deps, email, tx),
      ),
    )
    const json = toAccount(row, { balanceMicros: amountOf(settings.freeCreditIdr), heldMicros: 0n })
    return { status: 201, json }
  })

export const signupEndpoint = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint<SignupBody>({
    id: "dashboard.signup",
    summary:
      "Makes an account, and mails a link that confirms the address. Answers alike when the address has an account.",
    method: "POST",
    path: "/dashboard/signup",
    access: "public",
    body: SignupBody,
    maxBodyBytes: megabyte,
    reply: AccountReply,
    status: 201,
    plan: (call) => Effect.map(started, (deps) => freePlan(signUp(deps, call))),
  })
