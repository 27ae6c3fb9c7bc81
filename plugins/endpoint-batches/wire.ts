import { Schema } from "effect"
import {
  atMostCharacters,
  hasHiddenCharacters,
  isLongerThan,
  isVisible,
  type Json,
  listSchema,
  optional,
  rupiahNumber,
} from "../../core/index.ts"
import type { BatchRow, BatchStatus } from "./tables.ts"

const maxTags = 16
const maxTagName = 64
const maxTagText = 512

// jsonb stores neither a NUL nor a lone surrogate
const storable = (text: string): boolean => !/[\0\ud800-\udfff]/u.test(text)

const tagsProblem = Schema.makeFilter((tags: Readonly<Record<string, string>>) => {
  const names = Object.keys(tags)
  if (names.length > maxTags) return `must have at most ${maxTags} keys`
  if (names.some((name) => !isVisible(name) || isLongerThan(name, maxTagName)))
    return `must have keys of 1 to ${maxTagName} characters`
  if (names.some(hasHiddenCharacters))
    return "must have keys without control or invisible characters"
  return Object.values(tags).every(storable) || "must hold text without NUL"
})

export const CreateBatch = Schema.Struct({
  input_file_id: Schema.String.annotate({ description: "A file with the purpose `batch_input`." }),
  endpoint: Schema.String.annotate({
    description:
      "The one that every line targets: /v1/chat/completions, /v1/embeddings, /v1/rerank or /v1/retrieval, as far as this deployment has them.",
  }),
  completion_window: optional(Schema.Literal("24h")).annotate({ default: "24h" }),
  metadata: optional(
    Schema.Record(Schema.String, Schema.String.check(atMostCharacters(maxTagText))).check(
      tagsProblem,
    ),
  ).annotate({
    description: `Up to ${maxTags} tags: names of up to ${maxTagName} characters, texts of up to ${maxTagText}.`,
  }),
}).annotate({ identifier: "CreateBatch" })
export type CreateBatch = typeof CreateBatch.Type

const statuses = [
  "validating",
  "in_progress",
  "completed",
  "failed",
  "cancelled",
  "expired",
] as const satisfies readonly BatchStatus[]

const UnixSeconds = Schema.Int.annotate({ description: "Unix seconds." })
const SecondsOrNull = Schema.NullOr(UnixSeconds)

const InputError = Schema.Struct({
  code: Schema.String,
  message: Schema.String,
  line: Schema.NullOr(Schema.Int).annotate({ description: "Of the input file, counted from 1." }),
  param: Schema.NullOr(Schema.String),
}).annotate({ identifier: "BatchInputError" })

export const Batch = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("batch"),
  endpoint: Schema.String,
  input_file_id: Schema.String,
  output_file_id: Schema.NullOr(Schema.String),
  error_file_id: Schema.NullOr(Schema.String).annotate({ description: "Only where lines failed." }),
  completion_window: Schema.Literal("24h"),
  status: Schema.Literals(statuses),
  request_counts: Schema.Struct({ total: Schema.Int, completed: Schema.Int, failed: Schema.Int }),
  total_cost_idr: Schema.Number,
  created_at: UnixSeconds,
  in_progress_at: SecondsOrNull,
  completed_at: SecondsOrNull,
  failed_at: SecondsOrNull,
  cancelled_at: SecondsOrNull,
  expired_at: SecondsOrNull,
  expires_at: UnixSeconds,
  metadata: Schema.Record(Schema.String, Schema.String),
  errors: Schema.NullOr(
    Schema.Struct({ object: Schema.Literal("list"), data: Schema.Array(InputError) }),
  ).annotate({
    description:
      "What pre-flight found. A batch that is not `failed` has here the lines whose model its key does not reach: they fail alone.",
  }),
}).annotate({ identifier: "Batch" })

export const BatchList = listSchema(Batch, "BatchList")

const seconds = (at: Date): number => Math.floor(at.getTime() / 1000)
const secondsOrNull = (at: Date | null): number | null => at && seconds(at)

const countsOf = ({ total, completed, failed }: BatchRow) => ({ total, completed, failed })

const errorsOf = ({ errors }: BatchRow) => errors && { object: "list" as const, data: errors }

/** What the API shows of a batch. */
export const batchObject = (row: BatchRow) => {
  const endedAs = (status: BatchStatus) =>
    row.status === status ? secondsOrNull(row.ended_at) : null
  return {
    id: row.id,
    object: "batch" as const,
    endpoint: row.endpoint,
    input_file_id: row.input_file_id,
    output_file_id: row.output_file_id,
    error_file_id: row.error_file_id,
    completion_window: "24h" as const,
    status: row.status,
    request_counts: countsOf(row),
    total_cost_idr: rupiahNumber(row.cost_micros),
    created_at: seconds(row.created_at),
    in_progress_at: secondsOrNull(row.in_progress_at),
    completed_at: endedAs("completed"),
    failed_at: endedAs("failed"),
    cancelled_at: endedAs("cancelled"),
    expired_at: endedAs("expired"),
    expires_at: seconds(row.expires_at),
    metadata: row.metadata ?? {},
    errors: errorsOf(row),
  }
}

/** `data` of `batch.completed` and `batch.failed`. */
export const eventData = (row: BatchRow): Json => ({
  id: row.id,
  status: row.status,
  endpoint: row.endpoint,
  request_counts: countsOf(row),
  total_cost_idr: rupiahNumber(row.cost_micros),
  ...(row.status === "failed" && { errors: errorsOf(row) }),
})
