import { Schema } from "effect"
import { atMostCharacters, optional } from "../../../core/index.ts"
import { stageNames } from "../search/search.ts"

const maxQuery = 10_000
const maxTags = 16
const maxTagName = 64
const maxTagText = 512
/** Pages are counted in 32 bits. */
export const maxPage = 2 ** 31 - 1

const between = (minimum: number, maximum: number) =>
  Schema.Int.check(Schema.isBetween({ minimum, maximum }))

const FileIds = Schema.Array(Schema.String)
  .check(Schema.isMinLength(1, { message: "must hold at least one file" }))
  .check(Schema.isMaxLength(1_000, { message: "must hold at most 1,000 files" }))

/** What no file has in its metadata, as the database stores neither a NUL nor a lone surrogate. */
const unstorable = /[\0\ud800-\udfff]/u

const Metadata = Schema.Record(
  Schema.String,
  Schema.String.check(atMostCharacters(maxTagText)),
).check(
  Schema.makeFilter((tags: Readonly<Record<string, string>>) => {
    const names = Object.keys(tags)
    if (names.length > maxTags) return `must have at most ${maxTags} keys`
    if (names.some((name) => Array.from(name).length > maxTagName))
      return `must have keys of at most ${maxTagName} characters`
    return (
      ![...names, ...Object.values(tags)].some((text) => unstorable.test(text)) ||
      "must hold text without NUL"
    )
  }),
)

const Pages = Schema.Struct({
  from: optional(between(1, maxPage)).annotate({ default: 1 }),
  to: optional(between(1, maxPage)).annotate({ description: "The last one by default." }),
}).check(
  Schema.makeFilter(
    ({ from, to }) =>
      (from ?? 1) <= (to ?? maxPage) || "must have a `to` that is not before `from`",
  ),
)

const Filters = Schema.Struct({
  file_ids: optional(FileIds).annotate({ description: "As the field beside `filters`." }),
  metadata: optional(Metadata).annotate({
    description: "Files whose own metadata has all of these.",
  }),
  pages: optional(Pages).annotate({
    description: "Places on these pages; formats without pages have none.",
  }),
}).annotate({ identifier: "RetrievalFilters" })

const Weights = Schema.Struct({
  weight: Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })),
})

const Hybrid = Schema.Union([Schema.Boolean, Weights]).annotate({
  message: "must be true, false, or an object with a `weight` of 0 to 1",
})

/** By their paths, the objects of a body whose fields must all be known. */
export const strictFields: Readonly<Record<string, readonly string[]>> = {
  filters: Object.keys(Filters.fields),
  "filters.pages": Object.keys(Pages.fields),
  hybrid: Object.keys(Weights.fields),
}

/**
 * The body of `POST /v1/retrieval`. An explicit null counts as absent; unknown fields are ignored,
 * except in `strictFields`.
 */
export const RetrievalBody = Schema.Struct({
  query: Schema.String.check(
    Schema.isPattern(/\S/, { message: "must not be empty" }),
    atMostCharacters(maxQuery),
  ),
  file_ids: optional(FileIds).annotate({
    description: "Searches these files only; all processed knowledge files by default.",
  }),
  top_k: optional(between(1, 50)).annotate({
    default: 5,
    description: "How many results at most.",
  }),
  instruction: optional(Schema.String.check(atMostCharacters(maxQuery))).annotate({
    description: "An instruction for the embedding model, which reads it before the query.",
  }),
  hybrid: optional(Hybrid).annotate({
    default: false,
    description:
      "Searches by the words of the query, too, and joins both orders. `weight` is what the order by vectors counts, 0.5 for `true`; that by words counts the rest.",
  }),
  rerank: optional(
    Schema.Union([Schema.Boolean, Schema.NonEmptyString]).annotate({
      message: "must be true, false, or the id of a model",
    }),
  ).annotate({
    default: false,
    description:
      "A rerank model, or `true` for the deployment's own, reads the best candidates with the query and sorts them. Costs a search unit of that model.",
  }),
  filters: optional(Filters),
  neighbours: optional(between(0, 3)).annotate({
    default: 0,
    description: "How many chunks before and behind each result to return with it.",
  }),
  explain: optional(Schema.Boolean).annotate({
    default: false,
    description: "Adds the score and rank of each stage.",
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
    description: "The page that it is on, from 1 on, in formats that have pages.",
  }),
  start: Schema.optionalKey(Schema.Int).annotate({
    description:
      "Where it begins in the extracted text, in characters (Unicode code points); of TXT and MD that is the file's own text.",
  }),
  end: Schema.optionalKey(Schema.Int).annotate({ description: "The character behind its last." }),
}

const Neighbour = Schema.Struct({
  chunk_index: Schema.Int,
  text: Schema.String,
  ...place,
}).annotate({ identifier: "RetrievalNeighbour" })
export type Neighbour = typeof Neighbour.Type

const StageScore = Schema.Struct({
  score: Schema.Finite,
  rank: Schema.Int.annotate({ description: "From 1 on." }),
}).annotate({ identifier: "RetrievalStageScore" })

const ResultExplanation = Schema.Struct({
  vector: Schema.optionalKey(StageScore).annotate({ description: "The cosine, -1 to 1." }),
  text: Schema.optionalKey(StageScore).annotate({
    description: "By words: the sum of their weights, 0 or more.",
  }),
  fusion: Schema.optionalKey(StageScore).annotate({
    description:
      "Reciprocal rank fusion of both, of `text` with half of its best score and more; the first of both lists has 1.",
  }),
  rerank: Schema.optionalKey(StageScore),
}).annotate({ identifier: "RetrievalResultExplanation" })
export type ResultExplanation = typeof ResultExplanation.Type

export const RetrievalResult = Schema.Struct({
  file_id: Schema.String,
  chunk_index: Schema.Int,
  text: Schema.String,
  score: Schema.Finite.annotate({
    description:
      "0 to 1, the higher the better: the cosine of query and text; of the last stage with `hybrid` or `rerank`.",
  }),
  ...place,
  neighbours: Schema.optionalKey(Schema.Array(Neighbour)).annotate({
    description: "Chunks around it, in the order of the document; they overlap it by some text.",
  }),
  explain: Schema.optionalKey(ResultExplanation),
}).annotate({ identifier: "RetrievalResult" })
export type RetrievalResult = typeof RetrievalResult.Type

const Explanation = Schema.Struct({
  index: Schema.String.annotate({ description: "What searched the vectors." }),
  embedding_model: Schema.String,
  embedding_space: Schema.String,
  dimensions: Schema.Int.annotate({ description: "Of the stored vectors." }),
  rerank_model: Schema.optionalKey(Schema.String),
  candidates: Schema.Record(Schema.Literals(stageNames), Schema.optionalKey(Schema.Int)).annotate({
    description: "How long the list of each stage was.",
  }),
  words: Schema.optionalKey(
    Schema.Array(Schema.Struct({ word: Schema.String, chunks: Schema.Int })),
  ).annotate({
    description: "The words that were found, and in how many chunks, counted up to 4,000.",
  }),
}).annotate({ identifier: "RetrievalExplanation" })

export const RetrievalReply = Schema.Struct({
  object: Schema.Literal("list"),
  results: Schema.Array(RetrievalResult).annotate({ description: "Best first." }),
  query_tokens: Schema.Int.annotate({ description: "Of the query without its instruction." }),
  billed_tokens: Schema.Int.annotate({ description: "Of the query with its instruction." }),
  search_units: Schema.optionalKey(Schema.Int).annotate({ description: "With `rerank`." }),
  reindexing: Schema.optionalKey(Schema.Int).annotate({
    description:
      "Files that can't be found now, as the embedding model was changed and they are embedded again.",
  }),
  explain: Schema.optionalKey(Explanation),
}).annotate({ identifier: "RetrievalResponse" })
export type RetrievalReply = typeof RetrievalReply.Type
