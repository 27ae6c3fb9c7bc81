import type { Endpoint } from "../../../core/index.ts"
import type { OpenDeps } from "../deps.ts"
import { forgotEndpoint, resendEndpoint } from "./ask-for-mail.ts"
import { loginEndpoint } from "./login.ts"
import { meEndpoint } from "./me.ts"
import { resetEndpoint } from "./reset.ts"
import { signupEndpoint } from "./signup.ts"
import { verifyEmailEndpoint } from "./verify-email.ts"

/** Sign-up, sign-in, and what mails lead to. */
export const sessionEndpoints = (open: OpenDeps): readonly Endpoint[] => [
  signupEndpoint(open),
  verifyEmailEndpoint(open),
  loginEndpoint(open),
  forgotEndpoint(open),
  resetEndpoint(open),
  resendEndpoint(open),
  meEndpoint(open),
]
