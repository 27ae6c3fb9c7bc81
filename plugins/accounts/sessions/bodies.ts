import { Schema } from "effect"
import { atMostCharacters, optional } from "../../../core/index.ts"
import { parseEmail } from "../email.ts"
import { isUsablePassword, usablePasswordRule } from "../passwords.ts"
import { AccountReply } from "../to-account.ts"

/** Decoded as it is; `emailOf` normalizes it. */
const Email = Schema.String.check(
  Schema.makeFilter(
    (text: string) => parseEmail(text) !== undefined || "must be an e-mail address",
  ),
).annotate({ examples: ["ada@example.com"] })
const NewPassword = Schema.String.check(
  Schema.makeFilter((text: string) => isUsablePassword(text) || `must be ${usablePasswordRule}`),
)

/** No rule but a maximum: passwords set under older rules still work. */
const AnyPassword = Schema.String.check(atMostCharacters(200))
const MailToken = Schema.String.annotate({ description: "Of the link in the mail." })

export const SignupBody = Schema.Struct({ email: Email, password: NewPassword }).annotate({
  identifier: "SignupRequest",
})
export type SignupBody = typeof SignupBody.Type

export const LoginBody = Schema.Struct({
  email: Email,
  password: AnyPassword,
  code: optional(Schema.String.check(atMostCharacters(40))).annotate({
    description: "Of the authenticator app, or a recovery code, where the account asks for one.",
  }),
}).annotate({
  identifier: "LoginRequest",
})
export type LoginBody = typeof LoginBody.Type

export const VerifyBody = Schema.Struct({ token: MailToken }).annotate({
  identifier: "VerifyEmailRequest",
})
export type VerifyBody = typeof VerifyBody.Type

export const VerifyReply = Schema.Struct({
  ...AccountReply.fields,
  already_verified: optional(Schema.Boolean).annotate({
    description: "True when an earlier link had confirmed the address.",
  }),
}).annotate({ identifier: "VerifiedAccount" })

export const ForgotBody = Schema.Struct({ email: Email }).annotate({ identifier: "ForgotRequest" })
export type ForgotBody = typeof ForgotBody.Type

export const ResetBody = Schema.Struct({ token: MailToken, password: NewPassword }).annotate({
  identifier: "ResetRequest",
})
export type ResetBody = typeof ResetBody.Type

/** `current_password`: asked again, so that a session left open is not enough. */
export const PasswordBody = Schema.Struct({
  current_password: AnyPassword,
  password: NewPassword,
}).annotate({ identifier: "ChangePasswordRequest" })
export type PasswordBody = typeof PasswordBody.Type

export const EmailBody = Schema.Struct({ current_password: AnyPassword, email: Email }).annotate({
  identifier: "ChangeEmailRequest",
})
export type EmailBody = typeof EmailBody.Type

export const PasswordAgain = Schema.Struct({ current_password: AnyPassword }).annotate({
  identifier: "PasswordAgain",
})
export type PasswordAgain = typeof PasswordAgain.Type

export const LoginReply = Schema.Struct({
  token: Schema.String.annotate({
    description: "The session: `Authorization: Bearer <token>`. No API key.",
  }),
  expires_at: Schema.Int.annotate({ description: "Unix seconds." }),
  account: AccountReply,
}).annotate({ identifier: "Session" })

export const emailOf = (body: { readonly email: string }): string => parseEmail(body.email) ?? ""
