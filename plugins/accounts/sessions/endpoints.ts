import { Effect } from "effect"
import { defineEndpoint, type Endpoint, freePlan, type WhenStarted } from "../../../core/index.ts"
import type { AccountsDeps } from "../deps.ts"
import { lowBalanceEndpoint } from "../low-balance/endpoint.ts"
import { AccountReply } from "../to-account.ts"
import { topUpEndpoint } from "../top-ups/endpoint.ts"
import { twoFactorEndpoints } from "../two-factor/endpoints.ts"
import { forgotEndpoint, resendEndpoint } from "./ask-for-mail.ts"
import { confirmEmailEndpoint, emailEndpoint } from "./change-email.ts"
import { endSessionsEndpoint, passwordEndpoint } from "./change-password.ts"
import { deleteAccountEndpoint } from "./delete-account.ts"
import { loginEndpoint } from "./login.ts"
import { ownSessionEndpoints } from "./own-sessions.ts"
import { resetEndpoint } from "./reset.ts"
import { ownAccount, showAccount } from "./show-account.ts"
import { signupEndpoint } from "./signup.ts"
import { verifyEmailEndpoint } from "./verify-email.ts"
import { watchEndpoint } from "./watch-account.ts"

const meEndpoint = (started: WhenStarted<AccountsDeps>) =>
  defineEndpoint({
    id: "dashboard.me",
    summary: "The account of the session.",
    method: "GET",
    path: "/dashboard/me",
    access: "session",
    body: "none",
    maxBodyBytes: 0,
    reply: AccountReply,
    plan: ({ caller }) =>
      Effect.map(started, (deps) => {
        const show = Effect.flatMap(ownAccount(deps, caller), (row) => showAccount(deps, row))
        return freePlan(Effect.map(show, (json) => ({ status: 200, json })))
      }),
  })

/** Sign-up, sign-in, and the endpoints that mails link to. */
export const sessionEndpoints = (started: WhenStarted<AccountsDeps>): readonly Endpoint[] => [
  signupEndpoint(started),
  verifyEmailEndpoint(started),
  loginEndpoint(started),
  forgotEndpoint(started),
  resetEndpoint(started),
  resendEndpoint(started),
  meEndpoint(started),
  watchEndpoint(started),
  passwordEndpoint(started),
  endSessionsEndpoint(started),
  ...ownSessionEndpoints(started),
  emailEndpoint(started),
  confirmEmailEndpoint(started),
  deleteAccountEndpoint(started),
  ...twoFactorEndpoints(started),
  lowBalanceEndpoint(started),
  topUpEndpoint(started),
]
