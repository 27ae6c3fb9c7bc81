import { Effect, Schema } from "effect"
import {
  defaultLimits,
  type Limits,
  type Micros,
  parseRupiah,
  rupiahNumber,
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
const or = <S extends Schema.Top & { readonly Encoded: number }>(schema: S, value: S["Encoded"]) =>
  schema.pipe(Schema.withDecodingDefaultKey(Effect.succeed(value)))
const wholeMegabytes = Schema.Int.check(
  Schema.isBetween({ minimum: 1, maximum: defaultLimits.bodyMb }),
).annotate({
  description: "The largest JSON body in MB, unpacked; uploads of files have their own limits.",
})
const count = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000_000 }))

const DefaultLimits = Schema.Struct({
  rpm: or(count, defaultLimits.rpm),
  rpd: or(count, defaultLimits.rpd),
  concurrency: or(count, defaultLimits.concurrency),
  monthlyCapIdr: or(Schema.Finite.check(isAmount), rupiahNumber(defaultLimits.monthlyCapMicros)),
  bodyMb: or(wholeMegabytes, defaultLimits.bodyMb),
})

const TestKeys = Schema.Struct({
  models: Schema.Union([Schema.Literal("all"), Schema.Array(Schema.NonEmptyString)]).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed("all" as const)),
  ),
  rpd: or(count, defaultLimits.rpd),
})

/** An empty text counts as not set, so that a config file can have `${RAKIT_ADMIN_EMAIL:-}`. */
export const Settings = Schema.Struct({
  adminEmail: given(
    "RAKIT_ADMIN_EMAIL",
    (text) => parseEmail(text) !== undefined,
    "an e-mail address",
  ).pipe(Schema.withDecodingDefaultKey(Effect.succeed(""))),
  adminPassword: Schema.RedactedFromValue(
    given("RAKIT_ADMIN_PASSWORD", isUsablePassword, usablePasswordRule),
  ).pipe(Schema.withDecodingDefaultKey(Effect.succeed(""))),
  apiKey: Schema.RedactedFromValue(given("RAKIT_API_KEY", isUsableKey, usableKeyRule)).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed("")),
  ),
  freeCreditIdr: or(Schema.Finite.check(isAmount), 50_000),
  defaultLimits: DefaultLimits.pipe(Schema.withDecodingDefaultKey(Effect.succeed({}))),
  testKeys: TestKeys.pipe(Schema.withDecodingDefaultKey(Effect.succeed({}))),
  locale: Schema.Literals(locales).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed("en" as const)),
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
