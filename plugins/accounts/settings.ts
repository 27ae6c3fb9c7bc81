import { Schema } from "effect"
import {
  defaultLimits,
  type Limits,
  type Micros,
  parseRupiah,
  rupiahNumber,
  secretSetting,
  setting,
} from "../../core/index.ts"
import { isUsableKey, usableKeyRule } from "./api-key.ts"
import { parseEmail } from "./email.ts"
import { locales } from "./mails/locale.ts"
import { isUsablePassword, usablePasswordRule } from "./passwords.ts"

const isAmount = Schema.makeFilter(
  (idr: number) =>
    /^\d{1,12}(\.\d{1,6})?$/.test(String(idr)) ||
    "expected an amount in Rp of 0 or more, with at most 6 decimals",
)
/**
 * Empty or usable. Messages name the variable of the starter config and the rule, never the value.
 */
const given = (variable: string, isUsable: (text: string) => boolean, rule: string) =>
  Schema.String.check(
    Schema.makeFilter(
      (text: string) =>
        text === "" ||
        isUsable(text) ||
        `can't be used: it must be ${rule} (${variable}); correct it, or unset it`,
    ),
  )
const wholeMegabytes = Schema.Int.check(
  Schema.isBetween({ minimum: 1, maximum: defaultLimits.bodyMb }),
)
const count = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000_000 }))

const DefaultLimits = Schema.Struct({
  rpm: setting(count, defaultLimits.rpm, "Requests per minute."),
  rpd: setting(count, defaultLimits.rpd, "Requests per day."),
  concurrency: setting(count, defaultLimits.concurrency, "Requests at the same time."),
  monthlyCapIdr: setting(
    Schema.Finite.check(isAmount),
    rupiahNumber(defaultLimits.monthlyCapMicros),
    "Rp that a key may spend in a calendar month, 0: no cap; at most 6 decimals.",
  ),
  bodyMb: setting(
    wholeMegabytes,
    defaultLimits.bodyMb,
    "The largest JSON body in MB, unpacked; uploads of files have their own limits.",
  ),
})

const TestKeys = Schema.Struct({
  models: setting(
    Schema.Union([Schema.Literal("all"), Schema.Array(Schema.NonEmptyString)]),
    "all",
    "Ids of the models that test keys may call, or `all`.",
  ),
  rpd: setting(count, defaultLimits.rpd, "Requests per day of a test key."),
})

/** An empty text counts as not set, so that a config file can have `${RAKIT_ADMIN_EMAIL:-}`. */
export const Settings = Schema.Struct({
  adminEmail: setting(
    given("RAKIT_ADMIN_EMAIL", (text) => parseEmail(text) !== undefined, "an e-mail address"),
    "",
    "E-mail address of the first account, an administrator; `admin@rakit.local` when empty.",
  ),
  adminPassword: secretSetting(
    given("RAKIT_ADMIN_PASSWORD", isUsablePassword, usablePasswordRule),
    "Password of the first account; made, shown once and kept in the data folder when empty.",
  ),
  apiKey: secretSetting(
    given("RAKIT_API_KEY", isUsableKey, usableKeyRule),
    "The first account's first key; made, shown once and kept in the data folder when empty.",
  ),
  freeCreditIdr: setting(
    Schema.Finite.check(isAmount),
    50_000,
    "Rp that every new account is given; at most 6 decimals.",
  ),
  defaultLimits: setting(DefaultLimits, {}, "Limits of a key that is created without its own."),
  testKeys: setting(TestKeys, {}, "What keys of the test mode may do."),
  topUpSecret: secretSetting(
    given("RAKIT_TOP_UP_SECRET", (text) => text.length >= 24, "24 characters or more"),
    "The secret with which a payment provider signs messages to `POST /hooks/top-ups`; none are taken when empty.",
  ),
  locale: setting(
    Schema.Literals(locales),
    "en",
    "The language of mails to users whose browser asks for neither English nor Indonesian, and to the first account.",
  ),
})
export type Settings = typeof Settings.Type

export const amountOf = (idr: number): Micros => parseRupiah(String(idr))

export const limitsOf = ({ defaultLimits }: Settings): Limits => ({
  rpm: defaultLimits.rpm,
  rpd: defaultLimits.rpd,
  concurrency: defaultLimits.concurrency,
  monthlyCapMicros: amountOf(defaultLimits.monthlyCapIdr),
  bodyMb: defaultLimits.bodyMb,
})
