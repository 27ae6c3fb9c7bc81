import { Schema } from "effect"
import { secretSetting, setting } from "../../core/index.ts"
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
  url: secretSetting(
    Url,
    "`smtp://user:password@host:587` or `smtps://...`. Empty: no mail leaves the server.",
  ),
  from: setting(From, defaultFrom, "The sender, as `address` or `Name <address>`."),
})
export type Settings = typeof Settings.Type

export const senderOf = ({ from }: Settings) => parseSender(from === "" ? defaultFrom : from)!
