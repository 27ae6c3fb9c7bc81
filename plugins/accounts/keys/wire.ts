import { Schema } from "effect"
import { atMostCharacters, defaultLimits, listSchema, optional } from "../../../core/index.ts"
import { isKeyName, keyNameRule } from "../plain-text.ts"

/** More than anybody needs; larger values are mistakes. */
export const maxLimits = {
  rpm: 1_000_000,
  rpd: 1_000_000_000,
  concurrency: 1_000,
  monthlyCapIdr: 1e12,
  bodyMb: defaultLimits.bodyMb,
}
const maxScopes = 100

const count = (maximum: number) =>
  Schema.Int.check(
    Schema.isBetween(
      { minimum: 1, maximum },
      { message: `expected a whole number from 1 to ${maximum}` },
    ),
  )

const isCap = (idr: number) =>
  (/^\d{1,13}(\.\d{1,6})?$/.test(String(idr)) && idr <= maxLimits.monthlyCapIdr) ||
  `expected an amount in Rp from 0 (no cap) to ${maxLimits.monthlyCapIdr}, with at most 6 decimals`

const Name = Schema.String.check(
  Schema.makeFilter((name: string) => isKeyName(name) || keyNameRule),
)

const aboutBodyMb =
  "The largest JSON body in MB, unpacked. Uploads of files, and the lines of batches in them, have limits of their own."

const SomeLimits = Schema.Struct({
  rpm: optional(count(maxLimits.rpm)),
  rpd: optional(count(maxLimits.rpd)),
  concurrency: optional(count(maxLimits.concurrency)),
  monthly_cap_idr: optional(Schema.Finite.check(Schema.makeFilter(isCap))),
  body_mb: optional(count(maxLimits.bodyMb)).annotate({ description: aboutBodyMb }),
})
export type SomeLimits = typeof SomeLimits.Type

const Scopes = Schema.Array(Schema.String).check(
  Schema.isMinLength(1, { message: "expected at least one scope" }),
  Schema.isMaxLength(maxScopes, { message: `expected at most ${maxScopes} scopes` }),
)

const maxModels = 100
const maxNameOfModel = 200
const Models = Schema.Array(Schema.String.check(atMostCharacters(maxNameOfModel))).check(
  Schema.isMinLength(1, { message: "expected at least one model" }),
  Schema.isMaxLength(maxModels, { message: `expected at most ${maxModels} models` }),
)

/** 9999-12-31T23:59:59Z. */
const lastSecond = 253_402_300_799
const Expiry = Schema.Int.check(
  Schema.isBetween(
    { minimum: 1, maximum: lastSecond },
    { message: "expected a time in Unix seconds" },
  ),
)
const access = {
  expires_at: optional(Expiry).annotate({
    description: "Unix seconds, in the future. From then on it is refused. null: never.",
  }),
  models: optional(Models).annotate({ description: "The models it may use. null: all." }),
}

export const CreateKey = Schema.Struct({
  name: Name,
  test: optional(Schema.Boolean),
  limits: optional(SomeLimits),
  scopes: optional(Scopes),
  ...access,
}).annotate({
  identifier: "CreateKey",
})
export type CreateKey = typeof CreateKey.Type

export const ChangeKey = Schema.Struct({
  name: optional(Name),
  limits: optional(SomeLimits),
  scopes: optional(Scopes),
  ...access,
}).annotate({ identifier: "ChangeKey" })
export type ChangeKey = typeof ChangeKey.Type

const time = Schema.Int.annotate({ description: "Unix seconds." })

const fields = {
  id: Schema.String,
  object: Schema.Literal("api_key"),
  name: Schema.String,
  prefix: Schema.String.annotate({ description: "How the key begins." }),
  test: Schema.Boolean,
  scopes: Schema.Array(Schema.String),
  limits: Schema.Struct({
    rpm: Schema.Int,
    rpd: Schema.Int,
    concurrency: Schema.Int,
    monthly_cap_idr: Schema.Finite,
    body_mb: Schema.Int.annotate({ description: aboutBodyMb }),
  }),
  spent_this_month_idr: Schema.Finite,
  created_at: time,
  last_used_at: Schema.NullOr(time),
  revoked_at: Schema.NullOr(time),
  expires_at: Schema.NullOr(time),
  models: Schema.NullOr(Schema.Array(Schema.String)),
}

export const KeyReply = Schema.Struct(fields).annotate({ identifier: "ApiKey" })
export type KeyReply = typeof KeyReply.Type

const key = Schema.String.annotate({ description: "The key itself; it is shown only here." })
export const NewKeyReply = Schema.Struct({ ...fields, key }).annotate({ identifier: "NewApiKey" })
export const PlaygroundKeyReply = Schema.Struct({ ...fields, key, expires_at: time }).annotate({
  identifier: "PlaygroundKey",
})
export const KeyList = listSchema(KeyReply, "ApiKeyList")

export const ScopeList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(Schema.String),
}).annotate({ identifier: "ScopeList" })
