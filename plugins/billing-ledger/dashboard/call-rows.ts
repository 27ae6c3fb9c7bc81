import { Effect } from "effect"
import { type RawBuilder, sql } from "kysely"
import type { Database, Micros, PortError } from "../../../core/index.ts"

/** What became of a call. */
export const callStatuses = ["running", "succeeded", "failed", "refused"] as const
export type CallStatus = (typeof callStatuses)[number]

/** A row of the call log: a call, or a request that was refused. */
export interface LoggedCall {
  /** The id of a call; a refused request has `refused_` and its number. */
  readonly id: string
  readonly at: Date
  readonly requestId: string
  readonly endpoint: string
  readonly model: string | null
  readonly keyId: string
  readonly mode: "live" | "test"
  readonly status: CallStatus
  readonly httpStatus: number | null
  readonly inputTokens: string
  readonly outputTokens: string
  readonly costMicros: Micros
  readonly durationMs: number | null
  /** From the request's begin to the first token. */
  readonly firstMs: number | null
  /** How long each stage took, in the order in which they ended. */
  readonly stages: Readonly<Record<string, number>> | null
  readonly batch: string | null
  /** One of docs/errors.md; `client_closed`, `expired`. */
  readonly code: string | null
  readonly message: string | null
}

export interface CallQuery {
  readonly account: string
  readonly limit: number
  readonly after?: CallPosition | undefined
  readonly fromMs?: number | undefined
  readonly toMs?: number | undefined
  readonly model?: string | undefined
  readonly key?: string | undefined
  readonly status?: CallStatus | undefined
  /** Calls and refusals with this error code. */
  readonly code?: string | undefined
  /** Also calls that use no model and went well: lists, downloads, what the web app asks. */
  readonly showsFree?: boolean | undefined
}

export interface CallPosition {
  readonly at: Date
  readonly id: string
}

const all = (parts: readonly (RawBuilder<unknown> | undefined)[]) =>
  sql.join(
    parts.filter((part) => part !== undefined),
    sql` AND `,
  )

/** `at` and `id`: expressions of the table. Ids are compared as bytes, whatever the database's language. */
const where = (query: CallQuery, at: RawBuilder<unknown>, id: RawBuilder<unknown>) => {
  const { account, after, fromMs, toMs, model, key } = query
  return all([
    sql`account_id = ${account}`,
    fromMs === undefined ? undefined : sql`${at} >= ${new Date(fromMs)}`,
    toMs === undefined ? undefined : sql`${at} < ${new Date(toMs)}`,
    model === undefined ? undefined : sql`model = ${model}`,
    key === undefined ? undefined : sql`key_id = ${key}`,
    after && sql`${at} <= ${after.at} AND (${at}, ${id} COLLATE "C") < (${after.at}, ${after.id})`,
  ])
}

const statusOfCall = sql`CASE
  WHEN state = 'open' THEN 'running'
  WHEN state = 'refused' THEN 'refused'
  WHEN state = 'settled' AND coalesce(http_status, 200) < 400 THEN 'succeeded'
  ELSE 'failed' END`

const usesModel = sql`AND NOT (model IS NULL AND state = 'settled' AND coalesce(http_status, 200) < 400)`

/** Calls that ended before codes were kept have those that their state says. */
const codeOfCall = sql`coalesce(error_code, CASE WHEN state = 'expired' THEN 'expired' WHEN http_status = 499 THEN 'client_closed' END)`

const calls = (query: CallQuery) => sql`
  SELECT id::text COLLATE "C" AS id, admitted_at AS at, request_id AS "requestId", endpoint, model, key_id AS "keyId", mode, ${statusOfCall} AS status, http_status AS "httpStatus",
    input_tokens AS "inputTokens", output_tokens AS "outputTokens", cost_micros AS "costMicros",
    coalesce(total_ms, extract(epoch FROM settled_at - admitted_at) * 1000)::float8 AS "durationMs", first_ms::float8 AS "firstMs", stages, parent_id AS batch, ${codeOfCall} AS code, error_message AS message
  FROM ledger_call
  WHERE ${where(query, sql`admitted_at`, sql`id::text`)} AND counts IN ('all', 'money') ${query.showsFree ? sql`` : usesModel} ${query.status === undefined ? sql`` : sql`AND ${statusOfCall} = ${query.status}`} ${query.code === undefined ? sql`` : sql`AND error_code = ${query.code}`}
  ORDER BY admitted_at DESC, id::text COLLATE "C" DESC LIMIT ${query.limit}`

const refused = (query: CallQuery) => sql`
  SELECT ('refused_' || seq) COLLATE "C" AS id, at, request_id, endpoint, model, key_id, mode, 'refused', http_status, 0, 0, 0, NULL::float8, NULL::float8, NULL::json, NULL, code, message
  FROM ledger_refused_call
  WHERE ${where(query, sql`at`, sql`('refused_' || seq)`)} ${query.code === undefined ? sql`` : sql`AND code = ${query.code}`}
  ORDER BY at DESC, ('refused_' || seq) COLLATE "C" DESC LIMIT ${query.limit}`

/** Newest first; each half by its own index. */
export const readCalls = (
  database: Database,
  query: CallQuery,
): Effect.Effect<readonly LoggedCall[], PortError> => {
  const showsRefused = query.status === undefined || query.status === "refused"
  const both = showsRefused
    ? sql`(${calls(query)}) UNION ALL (${refused(query)})`
    : sql`${calls(query)}`
  const asked = sql<LoggedCall>`SELECT * FROM (${both}) AS logged ORDER BY at DESC, id DESC LIMIT ${query.limit}`
  return Effect.map(
    database.run(() => asked.execute(database.queries())),
    ({ rows }) => rows,
  )
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const numbered = /^refused_([1-9]\d{0,17})$/

/** Where the call of this id stands in the account's log. */
export const findCallPosition = (
  database: Database,
  account: string,
  id: string,
): Effect.Effect<CallPosition | undefined, PortError> => {
  const seq = numbered.exec(id)?.[1]
  if (seq === undefined && !uuid.test(id)) return Effect.succeed(undefined)
  const query =
    seq === undefined
      ? sql<CallPosition>`SELECT id::text AS id, admitted_at AS at FROM ledger_call WHERE id = ${id} AND account_id = ${account}`
      : sql<CallPosition>`SELECT 'refused_' || seq AS id, at FROM ledger_refused_call WHERE seq = ${seq} AND account_id = ${account}`
  return Effect.map(
    database.run(() => query.execute(database.queries())),
    ({ rows }) => rows[0],
  )
}
