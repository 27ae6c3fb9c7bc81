import { Schema } from "effect"
import { atMostCharacters } from "../../core/characters.ts"
import { optional } from "../../core/decode.ts"
import type { Json } from "../../core/json.ts"

const short = atMostCharacters(100_000)

const DocumentObject = Schema.StructWithRest(
  Schema.Struct({ text: Schema.String.check(short) }),
  // kept as they are, for `return_documents`
  [Schema.Record(Schema.String, Schema.Any as Schema.Codec<Json>)],
).annotate({ identifier: "RerankDocument", description: "Its `text` is ranked." })

const Document = Schema.Union([Schema.String.check(short), DocumentObject]).annotate({
  message: "must be a string, or an object with a `text`",
})

/** The body of `POST /v1/rerank`. An explicit null counts as absent; unknown fields are ignored. */
export const RerankBody = Schema.Struct({
  model: Schema.NonEmptyString,
  query: Schema.String.check(Schema.isPattern(/\S/, { message: "must not be empty" })).check(short),
  documents: Schema.Array(Document)
    .check(Schema.isMinLength(1, { message: "must hold at least one document" }))
    .check(Schema.isMaxLength(64, { message: "must hold at most 64 documents" })),
  top_n: optional(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))).annotate({
    description: "Only the best so many; all by default.",
  }),
  return_documents: optional(Schema.Boolean).annotate({
    default: false,
    description: "Gives back the documents as they were sent; a string as `{text}`.",
  }),
  rank_fields: optional(Schema.Array(Schema.String).check(Schema.isMaxLength(16))).annotate({
    description: 'Only `["text"]`, which is what is ranked anyway.',
  }),
  max_chunks_per_doc: optional(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))).annotate({
    description:
      "Only so many windows of a document that is longer than the model's window are read; all by default.",
  }),
  max_tokens_per_doc: optional(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))).annotate({
    description: "Only so many tokens of a document are read; all by default.",
  }),
  instruction: optional(Schema.String.check(short)).annotate({
    description: "In place of the model's own instruction; cross-encoders read none.",
  }),
}).annotate({
  identifier: "RerankRequest",
  examples: [
    { model: "svc-rerank", query: "ibu kota Indonesia", documents: ["Jakarta", "Kuala Lumpur"] },
  ],
})
export type RerankBody = typeof RerankBody.Type

export const RerankReply = Schema.Struct({
  id: Schema.String,
  results: Schema.Array(
    Schema.Struct({
      index: Schema.Int.annotate({ description: "Position in `documents`." }),
      relevance_score: Schema.Finite.annotate({
        description:
          "0 to 1, of the document's best window; 0 for one without text. Often low, so go by the order.",
      }),
      document: Schema.optionalKey(DocumentObject),
    }),
  ),
  meta: Schema.Struct({
    billed_units: Schema.Struct({ search_units: Schema.Int }),
    cost_idr: Schema.Finite,
  }),
}).annotate({ identifier: "RerankResponse" })
export type RerankReply = typeof RerankReply.Type
