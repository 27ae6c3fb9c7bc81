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
import type { NewAccount } from "../account-rows.ts"
import type { AccountsDeps } from "../deps.ts"
import { grantFreeCredit } from "../free-credit.ts"
import { mailboxLimit, signupLimits } from "../limits/limits.ts"
import { refuseOverLimit } from "../limits/refuse-over-limit.ts"
import { registeredMail, tokenMail } from "../mails/compose.ts"
import { chooseLocale } from "../mails/locale.ts"
import { hashPassword, isPassword, nobodysHash } from "../passwords.ts"
import { amountOf } from "../settings.ts"
import type { AccountTable } from "../tables.ts"
import { AccountReply, toAccount } from "../to-account.ts"
import { withoutTwoFactors } from "../two-factor/second-factor.ts"
import { emailOf, SignupBody } from "./bodies.ts"
import { revokeKeys } from "./reset.ts"

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

/**
 * Two have signed up with an address that nobody has confirmed, by different passwords, and either
 * may be a stranger: what the first one made is void, and the link in the mail lets the owner choose
 * a password.
 */
const contest = (deps: AccountsDeps, row: AccountTable, tx: Transaction) =>
  Effect.gen(function* () {
    const { accounts, deployment, limiter, mailer, tokens } = deps
    yield* revokeKeys(deps, row.id, tx)
    yield* tokens.forget(row.id, ["verify", "email"], tx)
    const changes = {
      ...withoutTwoFactors,
      password_hash: nobodysHash,
      session_epoch: row.session_epoch + 1,
    }
    yield* accounts.change(row.id, changes, tx)
    if ((yield* limiter.takeIn(mailboxLimit("reset", row.email), tx)) > 0) return
    const token = yield* tokens.issue(row.id, "reset", tx)
    yield* mailer.send(tokenMail(row, deployment, "reset", token), tx)
  })

type IsOwn = (row: AccountTable) => Effect.Effect<boolean, PortError>

/** Mails the owner of an existing account, within limits. Returns its id. */
const remind = (deps: AccountsDeps, email: string, isOwn: IsOwn, tx: Transaction) =>
  Effect.gen(function* () {
    const { accounts, audit, deployment, limiter, mailer, tokens } = deps
    const found = yield* accounts.byEmail(email, tx)
    const row = found && (yield* accounts.lock(found.id, tx))
    if (!row) return undefined
    const mayMail = (purpose: "registered" | "verify") =>
      Effect.map(limiter.takeIn(mailboxLimit(purpose, email), tx), (waitMs) => waitMs === 0)
    if (row.verified_at) {
      if (yield* mayMail("registered")) yield* mailer.send(registeredMail(row, deployment), tx)
    } else if (!(yield* isOwn(row))) yield* contest(deps, row, tx)
    else if (yield* mayMail("verify")) {
      const token = yield* tokens.issue(row.id, "verify", tx)
      yield* mailer.send(tokenMail(row, deployment, "verify", token), tx)
    }
    yield* audit.record({ actor: "anonymous", action: "account.signup_again", target: row.id }, tx)
    return row.id
  })

/** Compares the password with that of the account, if there is one, at the same cost if not. */
const comparedWith = (deps: AccountsDeps, email: string, password: string) =>
  Effect.gen(function* () {
    const known = yield* deps.accounts.byEmail(email)
    const isSame = yield* isPassword(known?.password_hash ?? nobodysHash, password)
    const isOwn: IsOwn = ({ password_hash }) =>
      password_hash === known?.password_hash
        ? Effect.succeed(isSame)
        : isPassword(password_hash, password)
    return isOwn
  })

/**
 * The reply has the same form, and takes the same time, whether the address has an account or not.
 */
const signUp = (deps: AccountsDeps, { body, client }: Call<SignupBody>) =>
  Effect.gen(function* () {
    const { accounts, clock, database, ids, keyChanges, limiter, settings } = deps
    yield* refuseOverLimit(
      limiter.take(signupLimits(client)),
      "Too many sign-ups from this address. Try again in a minute.",
    )
    const email = emailOf(body)
    const isOwn = yield* comparedWith(deps, email, body.password)
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
    const signing = database.transaction((tx) =>
      Effect.flatMap(accounts.insert(row, tx), (isNew) =>
        isNew ? Effect.as(welcome(deps, row, tx), undefined) : remind(deps, email, isOwn, tx),
      ),
    )
    // uninterruptible, so that the caches of this process are invalidated after every commit
    yield* Effect.uninterruptible(
      Effect.tap(signing, (account) =>
        Effect.sync(() => account !== undefined && keyChanges.announce({ account })),
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
