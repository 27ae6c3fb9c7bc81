import type { Endpoint, WhenStarted } from "../../../core/index.ts"
import type { AccountsDeps } from "../deps.ts"
import { forgotEndpoint, resendEndpoint } from "./ask-for-mail.ts"
import { loginEndpoint } from "./login.ts"
import { meEndpoint } from "./me.ts"
import { resetEndpoint } from "./reset.ts"
import { signupEndpoint } from "./signup.ts"
import { verifyEmailEndpoint } from "./verify-email.ts"

/** Sign-up, sign-in, and what mails lead to. */
export const sessionEndpoints = (started: WhenStarted<AccountsDeps>): readonly Endpoint[] => [
  signupEndpoint(started),
  verifyEmailEndpoint(started),
  loginEndpoint(started),
  forgotEndpoint(started),
  resetEndpoint(started),
  resendEndpoint(started),
  meEndpoint(started),
]
