import { Effect, Schema } from "effect"
import { defaultLimits, hasHiddenCharacters, isLongerThan, isVisible } from "../../core/index.ts"

const maxKeys = 1_000
const maxName = 100

/** An empty hash counts as no key, so that a config file can have `${RAKIT_KEY_HASH:-}`. */
const Hash = Schema.String.check(
  Schema.makeFilter(
    (text: string) =>
      /^(sha256:[0-9a-f]{64})?$/i.test(text) ||
      "must be sha256: and 64 hexadecimal digits, never the key itself; make both with: npx rakit keys hash",
  ),
)

const Name = Schema.String.check(
  Schema.makeFilter(
    (name: string) =>
      (isVisible(name) && !isLongerThan(name, maxName) && !hasHiddenCharacters(name)) ||
      `must be 1 to ${maxName} characters, without control or invisible characters`,
  ),
)

const count = (description: string) =>
  Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000_000_000 })),
  ).annotate({ description })
const bodyMb = Schema.optionalKey(
  Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: defaultLimits.bodyMb })),
).annotate({
  description: "The largest JSON body in MB, unpacked; uploads of files have their own limits.",
})
const Limits = Schema.Struct({
  rpm: count("Requests per minute."),
  rpd: count("Requests per day."),
  concurrency: count("Requests at the same time."),
  bodyMb,
})

const Key = Schema.Struct({
  name: Name.pipe(
    Schema.annotateKey({ description: "The key's name in logs and metrics; each once." }),
  ),
  hash: Hash.pipe(
    Schema.annotateKey({
      description:
        "`sha256:` and the SHA-256 of the whole key in hex: `npx rakit keys hash`. Empty: no key.",
    }),
  ),
  account: Schema.optionalKey(Name).pipe(
    Schema.annotateKey({
      description: "Keys of one account share its caches and files; by default each has its own.",
    }),
  ),
  test: Schema.optionalKey(Schema.Boolean).annotate({ description: "A key of the test mode." }),
  scopes: Schema.optionalKey(Schema.Array(Schema.String)).annotate({
    description: "Ids of endpoints, as chat.completions; all by default.",
  }),
  models: Schema.optionalKey(Schema.Array(Schema.String)).annotate({
    description: "Ids of models; all by default.",
  }),
  limits: Schema.optionalKey(Limits).annotate({
    description: "The key's own limits, in place of those of all keys.",
  }),
})
export type StaticKey = typeof Key.Type

const isRepeated = (texts: readonly string[]): boolean => new Set(texts).size < texts.length

const isEachOnce = Schema.makeFilter((keys: readonly StaticKey[]) => {
  if (isRepeated(keys.map(({ name }) => name))) return "must not have two keys of one name"
  const hashes = keys.map(({ hash }) => hash.toLowerCase()).filter((hash) => hash !== "")
  return !isRepeated(hashes) || "must not have one hash twice"
})

const { monthlyCapMicros: _, ...counts } = defaultLimits

export const Settings = Schema.Struct({
  keys: Schema.Array(Key)
    .check(Schema.isMaxLength(maxKeys, { message: `must be at most ${maxKeys} keys` }), isEachOnce)
    .pipe(Schema.annotateKey({ description: "The keys that may call, at most 1,000." })),
  limits: Limits.annotate({ description: "Of keys that say nothing else.", default: counts }).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed({})),
  ),
})
export type Settings = typeof Settings.Type
