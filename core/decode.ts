import { Effect, Result, Schema, SchemaIssue } from "effect"
import { type ApiError, apiError } from "./errors.ts"
import type { Json, Strings } from "./json.ts"

/** An optional field; an explicit null counts as absent. */
export const optional = <S extends Schema.Top>(schema: S) =>
  Schema.optionalKey(Schema.NullOr(schema))

/** A field or parameter that is `value` where it is missing; schemas written from it show both. */
export const withDefault = <S extends Schema.Top>(
  schema: S,
  value: S["Encoded"],
  description?: string,
) => {
  const notes = { default: value, ...(description !== undefined && { description }) }
  const annotated = (schema as Schema.Top).annotate(notes) as S
  return annotated.pipe(Schema.withDecodingDefaultKey<S>(Effect.succeed(value)))
}

/**
 * A setting of a plugin that is `value` where it is missing. Its line in the config reference stands
 * at the key, as notes at a schema with a check of its own get lost.
 */
export const setting = <S extends Schema.Top>(
  schema: S,
  value: S["Encoded"],
  description: string,
) => {
  const noted = (schema as Schema.Top).annotateKey({ default: value, description }) as S
  return noted.pipe(Schema.withDecodingDefaultKey<S>(Effect.succeed(value)))
}

/** A `setting` whose text nobody is to see; empty where it is missing. */
export const secretSetting = (text: Schema.Codec<string>, description: string, label?: string) =>
  Schema.RedactedFromValue(text.annotateKey({ default: "", description }), { label }).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed("")),
  )

type Path = ReadonlyArray<PropertyKey | { readonly key: PropertyKey }>

/** `["messages", 0, "content"]` -> `messages[0].content` */
export const formatPath = (path: Path = []): string =>
  path.reduce<string>((text, segment) => {
    const key = typeof segment === "object" ? segment.key : segment
    if (typeof key === "number") return `${text}[${key}]`
    return text === "" ? String(key) : `${text}.${String(key)}`
  }, "")

const formatIssues = SchemaIssue.makeFormatterStandardSchemaV1()

export interface DecodeProblem {
  readonly param: string
  readonly message: string
}

/** What effect says of a number in a query. */
const notANumber = "Expected a string representing a finite number"

/** Names of internal schemas mean nothing to a client, so they are left out. */
const plain = (message: string): string => {
  if (/^Expected ([A-Z]\w*|\{.*\})( \| null)?$/.test(message)) return "expected object"
  return message === notANumber
    ? "must be a number"
    : message.charAt(0).toLowerCase() + message.slice(1)
}

/**
 * Returns all problems of `input`, the deepest first where alternatives of a union disagree.
 * Messages contain no input values.
 */
export const explain = (issue: SchemaIssue.Issue): readonly DecodeProblem[] =>
  formatIssues(issue)
    .issues.map((i) => ({
      param: formatPath(i.path as Path),
      message: i.message,
      depth: i.path?.length ?? 0,
    }))
    .sort((a, b) => b.depth - a.depth)
    .map(({ param, message }) => ({ param, message: plain(message) }))

type Decoder = (input: Json) => Result.Result<unknown, Schema.SchemaError>

const keptDecoders = (
  codecOf: (schema: Schema.Codec<unknown, Json>) => Schema.Codec<unknown, Json>,
) => {
  const decoders = new WeakMap<object, Decoder>()
  return (schema: Schema.Codec<unknown, Json>): Decoder => {
    let decoder = decoders.get(schema)
    if (!decoder) {
      decoder = Schema.decodeUnknownResult(codecOf(schema))
      decoders.set(schema, decoder)
    }
    return decoder
  }
}

const bodyDecoder = keptDecoders((schema) => schema)
/** In a query, numbers are text, too. */
const queryDecoder = keptDecoders((schema) => Schema.toCodecStringTree(schema) as never)

/** The decoded input, or 400 `invalid_request_error` with the first problem's field as `param`. */
const decodedOr400 = <A>(decoder: Decoder, input: Json): Effect.Effect<A, ApiError> => {
  const decoded = decoder(input)
  if (Result.isSuccess(decoded)) return Effect.succeed(decoded.success as A)
  const [problem] = explain(decoded.failure.issue)
  const param = problem?.param || undefined
  return Effect.fail(
    apiError(
      "invalid_request_error",
      `${param ? `${param}: ` : ""}${problem?.message ?? "invalid"}`,
      { param },
    ),
  )
}

const plainNumber = /^-?\d{1,15}(\.\d{1,15})?$/

/** The parameters behind the `?` in the shape of `schema`; undeclared ones are ignored. */
export const decodeQuery = <A extends object>(
  schema: Schema.Codec<A, Json>,
  query: Strings,
): Effect.Effect<A, ApiError> =>
  Effect.flatMapEager(decodedOr400<A>(queryDecoder(schema), query), (decoded) => {
    // `1e1` is read as a number, too
    const odd = Object.entries(decoded).find(
      ([name, value]) => typeof value === "number" && !plainNumber.test(query[name] ?? "0"),
    )
    return odd
      ? Effect.fail(
          apiError("invalid_request_error", `${odd[0]}: must be a number`, { param: odd[0] }),
        )
      : Effect.succeed(decoded)
  })

/**
 * A request body in the shape of `schema`, or 400 `invalid_request_error` with the field as
 * `param`. How much it holds was bounded before it was parsed (`JsonBounds`).
 */
export const decodeBody = <A>(
  schema: Schema.Codec<A, Json>,
  body: Json,
): Effect.Effect<A, ApiError> =>
  typeof body !== "object" || body === null || Array.isArray(body)
    ? Effect.fail(apiError("invalid_request_error", "The body must be a JSON object."))
    : decodedOr400<A>(bodyDecoder(schema), body)
