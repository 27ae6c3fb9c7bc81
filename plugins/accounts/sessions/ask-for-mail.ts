import { Effect, Schema } from "effect"
import {
  type Call,
  defineEndpoint,
  freePlan,
  megabyte,
  type PortError,
  type WhenStarted,
} from "../../../core/index.ts"
import type { AccountsDeps } from "../deps.ts"
import { mailboxLimit, mailRequestLimits } from "../limits/limits.ts"
import { refuseOverLimit } from "../limits/refuse-over-limit.ts"
import { tokenMail } from "../mails/compose.ts"
import type { MailPurpose } from "../mails/mail-tokens.ts"
import { emailOf, ForgotBody } from "./bodies.ts"
import { ownAccount } from "./show-account.ts"

const tooMany = "Too many requests for mails from this address. Try again in a minute."
/** The reply to a request for a mail. */
export const Nothing = Schema.Struct({}).annotate({ identifier: "Accepted" })
const accepted = { status: 202, json: {} }

/** The reply to who is signed in, from whom the state of the mailbox is no secret. */
const Resent = Schema.Struct({
  sent: Schema.Boolean.annotate({ description: "Whether a mail is on its way." }),
  retry_after: Schema.Int.annotate({
    description: "Seconds until another one may be asked for, where none was sent; else 0.",
  }),
}).annotate({ identifier: "VerificationResent" })

/**
 * Beyond the limit of the mailbox nothing is sent. Returns 0, or the ms until it may be again;
 * `undefined` where there is nothing to send.
 */
const mailToken = (
  deps: AccountsDeps,
  account: string,
  purpose: MailPurpose,
): Effect.Effect<number | undefined, PortError> =>
  Effect.gen(function* () {
    const { accounts, audit, database, deployment, limiter, mailer, tokens } = deps
    return yield* database.transaction((tx) =>
      Effect.gen(function* () {
        const row = yield* accounts.lock(account, tx)
        if (!row || (purpose === "verify" && row.verified_at)) return undefined
        const waitMs = yield* limiter.takeIn(mailboxLimit(purpose, row.email), tx)
        if (waitMs > 0) return waitMs
        yield* mailer.send(
          tokenMail(row, deployment, purpose, yield* tokens.issue(row.id, purpose, tx)),
          tx,
        )
        yield* audit.record(
          {
            actor: purpose === "reset" ? "anonymous" : row.id,
            action: purpose === "reset" ? "account.forgot" : "account.resend_verification",
            target: row.id,
          },
          tx,
        )
        return 0
      }),
    )
  })

/** Everything that depends on whether the account exists happens after the reply. */
const forgot = (deps: AccountsDeps, { body, client }: Call<ForgotBody>) =>
  Effect.gen(function* () {
    const { accounts, background, limiter } = deps
    yield* refuseOverLimit(limiter.take(mailRequestLimits(client)), tooMany)
    const sending = Effect.flatMap(accounts.byEmail(emailOf(body)), (row) =>
      row ? Effect.asVoid(mailToken(deps, row.id, "reset")) : Effect.void,
    )
    background.later("the mail for a new password", sending)
    return accepted
  })

const resend = (deps: AccountsDeps, { caller, client }: Call<unknown>) =>
  Effect.gen(function* () {
    yield* refuseOverLimit(deps.limiter.take(mailRequestLimits(client)), tooMany)
    const row = yield* ownAccount(deps, caller)
    const waitMs = row.verified_at ? undefined : yield* mailToken(deps, row.id, "verify")
    const reply = { sent: waitMs === 0, retry_after: Math.ceil((waitMs ?? 0) / 1000) }
    return { status: 202, json: reply }
  })

export const forgotEndpoint = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint<ForgotBody>({
    id: "dashboard.forgot",
    summary: "Mails a link for a new password. Answers alike when the address has no account.",
    method: "POST",
    path: "/dashboard/forgot",
    access: "public",
    body: ForgotBody,
    maxBodyBytes: megabyte,
    reply: Nothing,
    status: 202,
    plan: (call) => Effect.map(started, (deps) => freePlan(forgot(deps, call))),
  })

export const resendEndpoint = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint({
    id: "dashboard.resend-verification",
    summary: "Mails the link that confirms the address once more.",
    method: "POST",
    path: "/dashboard/resend-verification",
    access: "session",
    body: "none",
    maxBodyBytes: megabyte,
    reply: Resent,
    status: 202,
    plan: (call) => Effect.map(started, (deps) => freePlan(resend(deps, call))),
  })
