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
import { loginLimits } from "../limits/limits.ts"
import { refuseOverLimit } from "../limits/refuse-over-limit.ts"
import { isPassword, nobodysHash } from "../passwords.ts"
import { checkCode, codeNeeded, usesTwoFactors } from "../two-factor/second-factor.ts"
import { emailOf, LoginBody, LoginReply } from "./bodies.ts"
import { showAccount } from "./show-account.ts"

const tooMany = "Too many failed sign-ins. Try again in a minute."

/**
 * Only failures count. The limit is checked again after the password: of parallel guesses no more
 * get an answer than of sequential ones. While the limit is used up, the right password is refused
 * like a wrong one.
 */
const logIn = (deps: AccountsDeps, { body, client }: Call<LoginBody>) =>
  Effect.gen(function* () {
    const { accounts, audit, limiter, sessions } = deps
    const email = emailOf(body)
    const limits = loginLimits(email, client)
    yield* refuseOverLimit(limiter.peek(limits), tooMany)
    const row = yield* accounts.byEmail(email)
    const isRight = yield* isPassword(row?.password_hash ?? nobodysHash, body.password)
    if (!row || !isRight) {
      yield* refuseOverLimit(limiter.take(limits), tooMany)
      yield* audit.record({
        actor: "anonymous",
        action: "login.fail",
        target: row?.id ?? "unknown",
      })
      return yield* apiError("authentication_error", "The e-mail address or the password is wrong.")
    }
    yield* refuseOverLimit(limiter.peek(limits), tooMany)
    if (usesTwoFactors(row)) {
      if (!body.code) return yield* codeNeeded()
      yield* checkCode(deps, row, client, body.code, "authentication_error")
    }
    const { token, expiresAt } = yield* sessions.begin(row, client)
    return {
      status: 200,
      headers: { "cache-control": "no-store" },
      json: { token, expires_at: expiresAt, account: yield* showAccount(deps, row) },
    }
  })

export const loginEndpoint = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint<LoginBody>({
    id: "dashboard.login",
    summary:
      "Begins a session of 24 hours. Also for accounts that are not verified yet, or suspended.",
    method: "POST",
    path: "/dashboard/login",
    access: "public",
    body: LoginBody,
    maxBodyBytes: megabyte,
    reply: LoginReply,
    plan: (call) => Effect.map(started, (deps) => freePlan(logIn(deps, call))),
  })
