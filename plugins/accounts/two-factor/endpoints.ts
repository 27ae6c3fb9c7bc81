import { Effect, Schema } from "effect"
import {
  apiError,
  atMostCharacters,
  type Call,
  defineEndpoint,
  type Endpoint,
  freePlan,
  megabyte,
  type Transaction,
  type WhenStarted,
} from "../../../core/index.ts"
import type { AccountChanges } from "../account-rows.ts"
import type { AccountsDeps } from "../deps.ts"
import { Nothing } from "../sessions/ask-for-mail.ts"
import { PasswordAgain } from "../sessions/bodies.ts"
import { changeOwn, ownAccountBy } from "../sessions/own-password.ts"
import { ownAccount } from "../sessions/show-account.ts"
import type { AccountTable } from "../tables.ts"
import { checkCode, totpSecretOf, usesTwoFactors, withoutTwoFactors } from "./second-factor.ts"
import { hashRecoveryCode, makeRecoveryCodes, makeTotpSecret, totpUrl } from "./totp.ts"

const Code = Schema.String.check(atMostCharacters(40)).annotate({
  description: "Six digits of the authenticator app, or a recovery code.",
})
const CodeBody = Schema.Struct({ code: Code }).annotate({ identifier: "TwoFactorCode" })
type CodeBody = typeof CodeBody.Type

const EndBody = Schema.Struct({ ...PasswordAgain.fields, code: Code }).annotate({
  identifier: "EndTwoFactor",
})
type EndBody = typeof EndBody.Type

const BeginReply = Schema.Struct({
  secret: Schema.String.annotate({ description: "In base32, for typing it into an app." }),
  url: Schema.String.annotate({ description: "`otpauth://...`, for a QR code." }),
}).annotate({ identifier: "TwoFactorSecret" })

const ConfirmReply = Schema.Struct({
  recovery_codes: Schema.Array(Schema.String).annotate({
    description: "Each is good for one sign-in. They are shown this once.",
  }),
}).annotate({ identifier: "TwoFactorTurnedOn" })

/**
 * Changes the account, and writes it into the audit log if it is more than a preparation. Refused
 * when the secret has changed since the row was read: codes of the checked one would be worth nothing.
 */
const change = (deps: AccountsDeps, row: AccountTable, changes: AccountChanges, action?: string) =>
  changeOwn(deps, row, (before, tx: Transaction) =>
    Effect.gen(function* () {
      const isSame =
        before.totp_secret === row.totp_secret && usesTwoFactors(before) === usesTwoFactors(row)
      if (!isSame) return undefined
      if (action !== undefined)
        yield* deps.audit.record({ actor: row.id, action, target: row.id }, tx)
      return yield* deps.accounts.change(row.id, changes, tx)
    }),
  )

const begin = (deps: AccountsDeps, { body, caller, client }: Call<PasswordAgain>) =>
  Effect.gen(function* () {
    const own = yield* ownAccountBy(deps, { caller, client, password: body.current_password })
    if (usesTwoFactors(own))
      return yield* apiError("conflict", "Sign-in asks for a code already. End that first.")
    const secret = makeTotpSecret()
    yield* change(deps, own, { totp_secret: deps.secrets.encrypt(secret), totp_last_step: null })
    return {
      status: 200,
      headers: { "cache-control": "no-store" },
      json: { secret, url: totpUrl(secret, deps.deployment.name, own.email) },
    }
  })

const confirm = (deps: AccountsDeps, call: Call<CodeBody>) =>
  Effect.gen(function* () {
    const own = yield* ownAccount(deps, call.caller)
    if (usesTwoFactors(own)) return yield* apiError("conflict", "Sign-in asks for a code already.")
    if (totpSecretOf(deps, own) === undefined)
      return yield* apiError("conflict", "Ask for a secret first.")
    yield* checkCode(deps, own, call.client, call.body.code, "invalid_request_error")
    const codes = makeRecoveryCodes()
    yield* change(
      deps,
      own,
      {
        totp_since: new Date(deps.clock.nowMs()),
        recovery_sha256: codes.map(hashRecoveryCode),
      },
      "account.two_factor",
    )
    return {
      status: 200,
      headers: { "cache-control": "no-store" },
      json: { recovery_codes: codes },
    }
  })

const end = (deps: AccountsDeps, call: Call<EndBody>) =>
  Effect.gen(function* () {
    const { body, caller, client } = call
    const own = yield* ownAccountBy(deps, { caller, client, password: body.current_password })
    if (!usesTwoFactors(own)) return yield* apiError("conflict", "Sign-in asks for no code.")
    yield* checkCode(deps, own, client, body.code, "invalid_request_error")
    yield* change(deps, own, withoutTwoFactors, "account.two_factor_end")
    return { status: 200, json: {} }
  })

const post = { method: "POST", access: "session", maxBodyBytes: megabyte } as const

/** A second factor for sign-in: codes of an authenticator app (TOTP, RFC 6238). */
export const twoFactorEndpoints = (started: WhenStarted<AccountsDeps>): readonly Endpoint[] => [
  defineEndpoint<PasswordAgain>({
    ...post,
    id: "dashboard.two-factor",
    summary: "Makes the secret of an authenticator app; it counts once a code confirms it.",
    path: "/dashboard/two-factor",
    body: PasswordAgain,
    reply: BeginReply,
    plan: (call) => Effect.map(started, (deps) => freePlan(begin(deps, call))),
  }),
  defineEndpoint<CodeBody>({
    ...post,
    id: "dashboard.two-factor.confirm",
    summary: "Asks for a code at every sign-in from now on; shows ten recovery codes, once.",
    path: "/dashboard/two-factor/confirm",
    body: CodeBody,
    reply: ConfirmReply,
    plan: (call) => Effect.map(started, (deps) => freePlan(confirm(deps, call))),
  }),
  defineEndpoint<EndBody>({
    ...post,
    id: "dashboard.two-factor.end",
    summary: "Signs in without codes again. Needs the password and a code.",
    path: "/dashboard/two-factor/end",
    body: EndBody,
    reply: Nothing,
    plan: (call) => Effect.map(started, (deps) => freePlan(end(deps, call))),
  }),
]
