import { Schema } from "effect"
import { atMostCharacters } from "../../core/characters.ts"
import { optional } from "../../core/decode.ts"

const short = atMostCharacters(100_000)

const Document = Schema.String.annotate({
  message: "must be a string; objects such as {text} are not taken",
}).check(short)

/** The body of `POST /v1/rerank`. An explicit null counts as absent; unknown fields are ignored. */
export const RerankBody = Schema.Struct({
  model: Schema.NonEmptyString,
  query: Schema.String.check(Schema.isMinLength(1, { message: "must not be empty" })).check(short),
  documents: Schema.Array(Document)
    .check(Schema.isMinLength(1, { message: "must hold at least one document" }))
    .check(Schema.isMaxLength(64, { message: "must hold at most 64 documents" })),
  top_n: optional(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))).annotate({
    description: "Only the best so many; all by default.",
  }),
  return_documents: optional(Schema.Boolean).annotate({ default: false }),
  instruction: optional(Schema.String.check(short)).annotate({
    description: "In place of the model's own instruction.",
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
        description: "0 to 1; often low, so go by the order.",
      }),
      document: Schema.optionalKey(Schema.Struct({ text: Schema.String })),
    }),
  ),
  meta: Schema.Struct({
    billed_units: Schema.Struct({ search_units: Schema.Int }),
    cost_idr: Schema.Finite,
  }),
}).annotate({ identifier: "RerankResponse" })
export type RerankReply = typeof RerankReply.Type
