import { Schema } from "effect"
import { atMostCharacters, optional } from "../../../core/index.ts"

const maxQuery = 10_000
const maxFiles = 1_000

const FileIds = Schema.Array(Schema.String)
  .check(Schema.isMinLength(1, { message: "must hold at least one file" }))
  .check(Schema.isMaxLength(maxFiles, { message: "must hold at most 1,000 files" }))

/**
 * The body of `POST /v1/retrieval`. An explicit null counts as absent; unknown fields are ignored.
 */
export const RetrievalBody = Schema.Struct({
  query: Schema.String.check(
    Schema.isPattern(/\S/, { message: "must not be empty" }),
    atMostCharacters(maxQuery),
  ),
  file_ids: optional(FileIds).annotate({
    description: "Searches these files only; all processed knowledge files by default.",
  }),
  top_k: optional(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 50 }))).annotate({
    default: 5,
    description: "How many results at most.",
  }),
  instruction: optional(Schema.String.check(atMostCharacters(maxQuery))).annotate({
    description: "An instruction for the embedding model, which reads it before the query.",
  }),
  include: optional(
    Schema.Array(Schema.Literals(["page", "offsets"])).check(Schema.isMaxLength(16)),
  ).annotate({
    description:
      "What results have beside their text: `page`, and `offsets` for `start` and `end`. All by default; nothing for `[]`.",
  }),
}).annotate({
  identifier: "RetrievalRequest",
  examples: [{ query: "How long is the warranty?", top_k: 3 }],
})
export type RetrievalBody = typeof RetrievalBody.Type

const place = {
  page: Schema.optionalKey(Schema.Int).annotate({
    description: "The page on which it begins, from 1 on, in formats that have pages.",
  }),
  start: Schema.optionalKey(Schema.Int).annotate({
    description:
      "Where it begins in the extracted text, in characters (Unicode code points); of TXT and MD that is the file's own text.",
  }),
  end: Schema.optionalKey(Schema.Int).annotate({ description: "The character behind its last." }),
}

export const RetrievalResult = Schema.Struct({
  file_id: Schema.String,
  chunk_index: Schema.Int,
  text: Schema.String,
  score: Schema.Finite.annotate({
    description: "0 to 1, the higher the better: the cosine of query and text.",
  }),
  ...place,
}).annotate({ identifier: "RetrievalResult" })
export type RetrievalResult = typeof RetrievalResult.Type

export const RetrievalReply = Schema.Struct({
  object: Schema.Literal("list"),
  results: Schema.Array(RetrievalResult).annotate({ description: "Best first." }),
  query_tokens: Schema.Int.annotate({ description: "Of the query without its instruction." }),
  billed_tokens: Schema.Int.annotate({ description: "Of the query with its instruction." }),
  reindexing: Schema.optionalKey(Schema.Int).annotate({
    description:
      "Files that can't be found now, as the embedding model was changed and they are embedded again.",
  }),
}).annotate({ identifier: "RetrievalResponse" })
export type RetrievalReply = typeof RetrievalReply.Type
