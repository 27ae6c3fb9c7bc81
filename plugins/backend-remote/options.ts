import { Result, Schema, SchemaIssue } from "effect"
import { withDefault } from "../../core/decode.ts"
import type { Json } from "../../core/json.ts"
import type { TaskName } from "../../core/ports/model.ts"
import { urlOf } from "../../core/url.ts"
import { type Feature, features, formsOf, kindNames, kinds } from "./kinds.ts"

const ms = (least: number, most: number, byDefault: number, description: string) =>
  withDefault(
    Schema.Int.check(Schema.isBetween({ minimum: least, maximum: most })),
    byDefault,
    description,
  )

const isBaseUrl = (text: string): boolean | string => {
  const url = urlOf(text)
  if (url?.protocol !== "http:" && url?.protocol !== "https:") return "must be an http(s) URL"
  if (url.username !== "" || url.password !== "") return "must not hold a password; write it as key"
  return (url.search === "" && url.hash === "") || "must end with its path"
}

const Upstream = Schema.Struct({
  url: Schema.String.check(Schema.makeFilter(isBaseUrl)).annotateKey({
    description:
      "Base URL, as http://10.0.0.5:8000 or https://host/v1; /v1 is added where there is no path.",
  }),
  model: Schema.NonEmptyString.annotate({ description: "What the server calls the model." }),
  key: Schema.optionalKey(
    Schema.RedactedFromValue(
      Schema.String.annotateKey({
        description: "Sent as a bearer token. Write ${NAME}, so that it stays in the environment.",
      }),
    ),
  ),
  weight: withDefault(
    Schema.Finite.check(Schema.isBetween({ minimum: 0.01, maximum: 1_000 })),
    1,
    "Its part of the requests, against the others' weights.",
  ),
  name: Schema.optionalKey(
    Schema.String.check(
      Schema.isPattern(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, {
        message: "must be 1 to 64 letters, digits or . _ -",
      }),
    ),
  ).annotate({ description: "In metrics, log and receipts; u1, u2 ... by default." }),
  kind: withDefault(
    Schema.Literals(kindNames),
    "compatible",
    "The server's kind: which fields it keeps, and what it calls them.",
  ),
  keeps: withDefault(
    Schema.Array(Schema.Literals(features)),
    [],
    "What this server keeps beyond its kind.",
  ),
  lacks: withDefault(
    Schema.Array(Schema.Literals(features)),
    [],
    "What this server does not keep of its kind; requests for it are refused by name.",
  ),
  caFile: Schema.optionalKey(Schema.NonEmptyString).annotate({
    description: "PEM file of the authority that signed its certificate.",
  }),
})
export type UpstreamOptions = typeof Upstream.Type

const shared = {
  upstreams: withDefault(
    Schema.Array(Upstream).check(Schema.isMaxLength(64, { message: "must hold at most 64" })),
    [],
    "The servers that serve this model; requests are spread over those that answer.",
  ),
  fallback: withDefault(
    Schema.Array(Schema.NonEmptyString).check(
      Schema.isMaxLength(8, { message: "must name at most 8 models" }),
    ),
    [],
    "Ids of models of this deployment that serve a request, in this order, which no upstream did.",
  ),
  retries: withDefault(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10 })),
    2,
    "Further attempts before the first byte of an answer.",
  ),
  connectTimeoutMs: ms(50, 60_000, 5_000, "How long a connection may take."),
  firstByteTimeoutMs: ms(50, 600_000, 120_000, "How long the first event of an answer may take."),
  idleTimeoutMs: ms(50, 600_000, 60_000, "The longest pause between two events of an answer."),
  healthIntervalMs: ms(100, 600_000, 10_000, "How often each upstream is asked for its models."),
  tokenizer: Schema.optionalKey(Schema.NonEmptyString).annotate({
    description:
      "The model's tokenizer.json, or its folder: absolute, or below the entry's files. Usage that the upstreams report is checked against it.",
  }),
  ejectAfter: withDefault(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1_000 })),
    3,
    "Failures in a row after which an upstream gets no requests for a while.",
  ),
  ejectMs: ms(10, 3_600_000, 5_000, "How long at first; twice as long each time, up to 5 minutes."),
  slowStartMs: ms(0, 600_000, 10_000, "How long an upstream that is back has a growing share."),
}

const ChatOptions = Schema.Struct({
  ...shared,
  recommendedTemperature: Schema.optionalKey(
    Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 2 })),
  ).annotate({
    description:
      "What GET /v1/models recommends to sample with, and the playground begins with. Requests without a temperature have 1 all the same.",
  }),
  affinity: withDefault(
    Schema.Boolean,
    true,
    "Send prompts with the same beginning to the same upstream, whose prefix cache has it.",
  ),
  formChecks: withDefault(
    Schema.Literals(["fail", "retry", "off"]),
    "fail",
    "An answer that breaks its JSON Schema or pattern fails; is held back and tried again; or passes.",
  ),
})

const EmbedOptions = Schema.Struct({
  ...shared,
  dimensions: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 65_536 })),
  ).annotate({
    description: "Length of the vectors; that of the first answer by default. Others are refused.",
  }),
  space: Schema.optionalKey(
    Schema.NonEmptyString.check(
      Schema.isPattern(/^[\x20-\x7e]{1,100}$/, {
        message: "must be at most 100 characters of ASCII",
      }),
    ),
  ).annotate({
    description:
      "Name of the vector space: another Rakit's own by default, else the model's name at the first upstream.",
  }),
  instructionTemplate: withDefault(
    Schema.String.check(
      Schema.isPattern(/\{instruction\}/, { message: "must have {instruction} in it" }),
    ),
    "{instruction} ",
    "How a request's instruction stands before each text. Another Rakit gets it as it is.",
  ),
})
const RerankOptions = Schema.Struct(shared)
const { tokenizer: _, ...untold } = shared
const ImageOptions = Schema.Struct({
  ...untold,
  firstByteTimeoutMs: ms(50, 3_600_000, 600_000, "How long a picture may take."),
})

const TranscribeOptions = Schema.Struct({
  ...untold,
  firstByteTimeoutMs: ms(50, 3_600_000, 600_000, "How long a transcription may take."),
})

/** Schemas of a model entry's `options`, by task. */
export const entryOptions = {
  chat: ChatOptions,
  embed: EmbedOptions,
  rerank: RerankOptions,
  image: ImageOptions,
  transcribe: TranscribeOptions,
}
export type SharedOptions = typeof RerankOptions.Type
export type RemoteOptions = SharedOptions &
  Partial<Pick<typeof ChatOptions.Type, "affinity" | "formChecks" | "recommendedTemperature">> &
  Partial<Pick<typeof EmbedOptions.Type, "dimensions" | "space" | "instructionTemplate">>

const format = SchemaIssue.makeFormatterStandardSchemaV1()

const namesOf = ({ upstreams }: RemoteOptions) =>
  upstreams.map(({ name }, index) => name ?? `u${index + 1}`)

/** A form that a server is said to keep, but that there is no field for: it would be dropped. */
const unknownForms = ({ kind, keeps }: UpstreamOptions): readonly string[] => {
  const { forms } = kinds[kind]
  const known: readonly Feature[] = forms === undefined ? [] : formsOf[forms]
  return keeps
    .filter((feature) => formsOf.rakit.some((form) => form === feature))
    .filter((feature) => !known.includes(feature))
    .map((feature) => `keeps: servers of the kind ${kind} have no field for ${feature}`)
}

/** Decodes the options of an entry; a text says what is wrong with them. */
export const decodeOptions = (task: TaskName, options: Json): RemoteOptions | string => {
  const decoded = Schema.decodeUnknownResult(
    entryOptions[task] as unknown as Schema.Codec<RemoteOptions, unknown>,
    { errors: "all", onExcessProperty: "error" },
  )(options ?? {})
  if (Result.isFailure(decoded))
    return format(decoded.failure.issue)
      .issues.map((issue) => `${["options", ...(issue.path ?? [])].join(".")}: ${issue.message}`)
      .join("; ")
  const { upstreams, fallback } = decoded.success
  if (upstreams.length + fallback.length === 0)
    return "options.upstreams: must name at least one server, or fallback a model"
  const unknown = upstreams.flatMap(unknownForms)[0]
  if (unknown !== undefined) return `options.upstreams: ${unknown}`
  const names = namesOf(decoded.success)
  const twice = names.find((name, index) => names.indexOf(name) < index)
  return twice === undefined
    ? decoded.success
    : `options.upstreams: the name '${twice}' is given twice`
}
