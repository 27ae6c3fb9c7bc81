import { Schema } from "effect"
import { secretSetting, setting, urlOf } from "../../core/index.ts"

const text = (description: string) => setting(Schema.String, "", description)

const isPrefix = Schema.makeFilter(
  (text: string) =>
    text === "" ||
    (text.length <= 200 &&
      /^[A-Za-z0-9_-][A-Za-z0-9._-]*(\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*\/?$/.test(text)) ||
    "expected names of A-Z a-z 0-9 . _ - with / between them, at most 200 characters",
)
const isEndpoint = Schema.makeFilter(
  (text: string) =>
    text === "" ||
    /^https?:$/.test(urlOf(text)?.protocol ?? "") ||
    "expected http://host[:port] or https://host[:port]",
)
const between = (minimum: number, maximum: number, value: number, description: string) =>
  setting(Schema.Int.check(Schema.isBetween({ minimum, maximum })), value, description)

/** An empty text counts as not set, so that a config file can have `${S3_ENDPOINT:-}`. */
export const StorageS3Settings = Schema.Struct({
  endpoint: setting(
    Schema.String.check(isEndpoint),
    "",
    "The store's URL; empty: that of AWS for the region.",
  ),
  region: setting(Schema.String, "us-east-1", "The region that requests are signed for."),
  bucket: Schema.NonEmptyString.annotate({ description: "The bucket; it must exist." }),
  prefix: setting(
    Schema.String.check(isPrefix),
    "",
    "A folder of the bucket for this deployment; empty: all of it.",
  ),
  accessKeyId: text("Empty, with secretAccessKey: the machine's own credentials (AWS)."),
  secretAccessKey: secretSetting(Schema.String, "The secret of accessKeyId."),
  pathStyle: setting(
    Schema.Boolean,
    false,
    "https://host/bucket/key instead of https://bucket.host/key; most own stores.",
  ),
  presignSeconds: between(
    0,
    604_800,
    0,
    "Files are downloaded from the store itself, by links that are good for so long; 0: through the server.",
  ),
  presignEndpoint: setting(
    Schema.String.check(isEndpoint),
    "",
    "The store's URL in those links, as customers reach it; empty: `endpoint`.",
  ),
  serverSideEncryption: text(
    "`AES256`, or `aws:kms` with the bucket's key; empty: what the bucket does.",
  ),
  storageClass: text("As the store names it: `STANDARD_IA`; empty: its default."),
  attempts: between(1, 10, 4, "Tries of one request, the first included."),
  retryBudget: between(
    0,
    10_000,
    100,
    "Retries that all requests share; a tenth of one comes back with each success.",
  ),
  timeoutMs: between(
    100,
    600_000,
    30_000,
    "The longest wait for one request's answer, and for the next byte of a download.",
  ),
})
export type StorageS3Settings = typeof StorageS3Settings.Type
