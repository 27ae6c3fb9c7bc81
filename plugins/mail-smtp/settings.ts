import { Effect, Schema } from "effect"
import { parseSender } from "./address.ts"
import { parseSmtpUrl } from "./smtp-url.ts"

const defaultFrom = "Rakit <no-reply@localhost>"

/** Messages name the rule, not the value, which holds a password. */
const Url = Schema.String.check(
  Schema.makeFilter(
    (text: string) =>
      text === "" ||
      parseSmtpUrl(text) !== undefined ||
      "can't be used: it must be smtp://[user:password@]host[:port] or smtps://..., with `requireTLS` and `rejectUnauthorized` as its only parameters",
  ),
)
const From = Schema.String.check(
  Schema.makeFilter(
    (text: string) =>
      text === "" || parseSender(text) !== undefined || "expected `address` or `Name <address>`",
  ),
)

export const Settings = Schema.Struct({
  /** `smtp://user:password@host:587` or `smtps://...`. Empty: no mail leaves the server. */
  url: Schema.RedactedFromValue(Url).pipe(Schema.withDecodingDefaultKey(Effect.succeed(""))),
  /** The sender; empty: the default. */
  from: From.annotate({ default: defaultFrom }).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(defaultFrom)),
  ),
})
export type Settings = typeof Settings.Type

export const senderOf = ({ from }: Settings) => parseSender(from === "" ? defaultFrom : from)!
