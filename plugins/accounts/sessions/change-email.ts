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
import { mailboxLimit, mailRequestLimits } from "../limits/limits.ts"
import { refuseOverLimit } from "../limits/refuse-over-limit.ts"
import { emailChangedMail, registeredMail, tokenMail } from "../mails/compose.ts"
import { Nothing } from "./ask-for-mail.ts"
import { EmailBody, emailOf, VerifyBody, VerifyReply } from "./bodies.ts"
import { changeOwn, ownAccountBy } from "./own-password.ts"
import { redeem } from "./redeem.ts"
import { showAccount } from "./show-account.ts"

const tooMany = "Too many requests for mails from this address. Try again in a minute."

/** The reply is the same whether another account has the address, whose owner gets a mail then. */
const askForEmail = (deps: AccountsDeps, { body, caller, client }: Call<EmailBody>) =>
  Effect.gen(function* () {
    const { accounts, audit, deployment, limiter, mailer, tokens } = deps
    yield* refuseOverLimit(limiter.take(mailRequestLimits(client)), tooMany)
    const email = emailOf(body)
    const own = yield* ownAccountBy(deps, { caller, client, password: body.current_password })
    if (email === own.email)
      return yield* apiError("invalid_request_error", "email: is the address already", {
        param: "email",
      })
    yield* changeOwn(deps, own, (before, tx) =>
      Effect.gen(function* () {
        const other = yield* accounts.byEmail(email, tx)
        const kind = other ? "registered" : "email"
        yield* audit.record({ actor: own.id, action: "account.ask_email", target: own.id }, tx)
        // also where nothing is mailed: whether an earlier link still works must not tell
        const token = yield* tokens.issue(own.id, "email", tx, email)
        if ((yield* limiter.takeIn(mailboxLimit(kind, email), tx)) > 0) return before
        const mail = other
          ? registeredMail(other, deployment)
          : tokenMail({ email, locale: before.locale }, deployment, "email", token)
        yield* mailer.send(mail, tx)
        return before
      }),
    )
    return { status: 202, json: {} }
  })

/** What was mailed to the old address works no longer, and its owner gets a notice. */
const confirmEmail = (deps: AccountsDeps, { body }: Call<VerifyBody>) =>
  Effect.gen(function* () {
    const { accounts, audit, clock, deployment, mailer, tokens } = deps
    const email = yield* tokens.addressOf(body.token)
    const spent = yield* tokens.spent(body.token, "email")
    const before = spent === undefined ? undefined : yield* accounts.byId(spent)
    if (before && before.email === email)
      return {
        status: 200,
        json: { ...(yield* showAccount(deps, before)), already_verified: true },
      }
    const account = yield* tokens.find(body.token, "email")
    const row = yield* redeem(deps, body.token, "email", account, (old, tx) =>
      Effect.gen(function* () {
        // somebody else has signed up with it since: the token is used up
        if (email === undefined || (yield* accounts.byEmail(email, tx))) return undefined
        yield* tokens.forget(old.id, ["verify", "reset"], tx)
        yield* audit.record(
          {
            actor: old.id,
            action: "account.email",
            target: old.id,
            before: { email: old.email },
            after: { email },
          },
          tx,
        )
        yield* mailer.send(emailChangedMail(old, deployment, email), tx)
        const verified_at = old.verified_at ?? new Date(clock.nowMs())
        return yield* accounts.change(old.id, { email, verified_at }, tx)
      }),
    )
    return { status: 200, json: yield* showAccount(deps, row) }
  })

export const emailEndpoint = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint<EmailBody>({
    id: "dashboard.email",
    summary: "Mails a link to a new e-mail address. Answers alike when the address has an account.",
    method: "POST",
    path: "/dashboard/email",
    access: "session",
    body: EmailBody,
    maxBodyBytes: megabyte,
    reply: Nothing,
    status: 202,
    plan: (call) => Effect.map(started, (deps) => freePlan(askForEmail(deps, call))),
  })

export const confirmEmailEndpoint = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint<VerifyBody>({
    id: "dashboard.confirm-email",
    summary: "Changes the e-mail address with the token that was mailed to the new one.",
    method: "POST",
    path: "/dashboard/confirm-email",
    access: "public",
    body: VerifyBody,
    maxBodyBytes: megabyte,
    reply: VerifyReply,
    plan: (call) => Effect.map(started, (deps) => freePlan(confirmEmail(deps, call))),
  })
