import { Schema } from "effect"
import { formatRupiah, rupiahNumber } from "../../../core/index.ts"
import { csvLine, number, text } from "../csv.ts"
import { callStatuses, type LoggedCall } from "./call-rows.ts"

const Ms = Schema.NullOr(Schema.Finite)

export const LoggedCallReply = Schema.Struct({
  id: Schema.String.annotate({
    description: "The call's id; of a request that was refused before, `refused_` and a number.",
  }),
  object: Schema.Literal("call"),
  request_id: Schema.String,
  created_at: Schema.Int.annotate({ description: "Unix seconds." }),
  endpoint: Schema.String,
  model: Schema.NullOr(Schema.String),
  key_id: Schema.NullOr(Schema.String),
  mode: Schema.Literals(["live", "test"]),
  status: Schema.Literals(callStatuses),
  http_status: Schema.NullOr(Schema.Int),
  input_tokens: Schema.Int,
  output_tokens: Schema.Int,
  cost_idr: Schema.Finite,
  duration_ms: Ms.annotate({ description: "From the request's begin to its settlement." }),
  first_token_ms: Ms.annotate({ description: "From the request's begin to the first token." }),
  stages_ms: Schema.NullOr(Schema.Record(Schema.String, Schema.Finite)).annotate({
    description: "The stages of `Server-Timing`, without `settle`; null in older calls.",
  }),
  batch_id: Schema.NullOr(Schema.String),
  has_receipt: Schema.Boolean,
  error: Schema.NullOr(Schema.Struct({ code: Schema.String, message: Schema.String })).annotate({
    description:
      "What the client was given; `client_closed`: it left; `expired`: the server that ran the call went away.",
  }),
}).annotate({ identifier: "LoggedCall" })

const messages: Readonly<Record<string, string>> = {
  client_closed: "The client closed the connection before the answer was complete.",
  expired: "The server that ran the call went away, or the call was over its time.",
}

const tenths = (ms: number | null) => (ms === null ? null : Math.round(ms * 10) / 10)

const isCall = ({ id }: LoggedCall) => !id.startsWith("refused_")
const keyOf = ({ keyId }: LoggedCall) => (keyId.startsWith("session:") ? null : keyId)
const messageOf = ({ code, message }: LoggedCall) => message ?? messages[code ?? ""] ?? ""

/** The ingest of a knowledge file stands below its file. */
const batchOf = ({ batch }: LoggedCall): string | null =>
  batch?.startsWith("batch-") ? batch : null

export const toLogged = (row: LoggedCall) => ({
  id: row.id,
  object: "call" as const,
  request_id: row.requestId,
  created_at: Math.floor(row.at.getTime() / 1000),
  endpoint: row.endpoint,
  model: row.model,
  key_id: keyOf(row),
  mode: row.mode,
  status: row.status,
  http_status: row.httpStatus,
  input_tokens: Number(row.inputTokens),
  output_tokens: Number(row.outputTokens),
  cost_idr: rupiahNumber(BigInt(row.costMicros)),
  duration_ms: tenths(row.durationMs),
  first_token_ms: tenths(row.firstMs),
  stages_ms: row.stages,
  batch_id: batchOf(row),
  has_receipt: row.status !== "running" && isCall(row),
  error: row.code === null ? null : { code: row.code, message: messageOf(row) },
})

const columns: Readonly<Record<string, (row: LoggedCall) => string | number | bigint | null>> = {
  id: ({ id }) => id,
  created_at: ({ at }) => at.toISOString(),
  request_id: ({ requestId }) => requestId,
  endpoint: ({ endpoint }) => endpoint,
  model: ({ model }) => model,
  key: keyOf,
  mode: ({ mode }) => mode,
  status: ({ status }) => status,
  http_status: ({ httpStatus }) => httpStatus,
  input_tokens: ({ inputTokens }) => Number(inputTokens),
  output_tokens: ({ outputTokens }) => Number(outputTokens),
  cost_idr: ({ costMicros }) => BigInt(costMicros),
  duration_ms: ({ durationMs }) => tenths(durationMs),
  first_token_ms: ({ firstMs }) => tenths(firstMs),
  stages_ms: ({ stages }) =>
    Object.entries(stages ?? {})
      .map(([stage, ms]) => `${stage}=${ms}`)
      .join(" "),
  batch_id: batchOf,
  error_code: ({ code }) => code,
  error_message: (row) => messageOf(row),
}

export const callHead = csvLine(Object.keys(columns).map(text))

export const callLine = (row: LoggedCall): string =>
  csvLine(
    Object.values(columns).map((cellOf) => {
      const value = cellOf(row)
      if (typeof value === "bigint") return number(formatRupiah(value))
      return typeof value === "number" ? number(value) : text(value)
    }),
  )
