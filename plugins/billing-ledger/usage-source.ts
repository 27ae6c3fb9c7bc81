import { type RawBuilder, sql } from "kysely"

export interface UsageSource {
  /** All accounts by default. */
  readonly account?: string
  readonly mode: "live" | "test"
  readonly fromMs: number
  /** Exclusive. */
  readonly toMs: number
  readonly nowMs: number
}

const hourMs = 3_600_000
const before = (ms: number) => Math.floor(ms / hourMs) * hourMs
const after = (ms: number) => Math.ceil(ms / hourMs) * hourMs
const nearest = (ms: number) => Math.round(ms / hourMs) * hourMs

/** Alias of the rows of `usageSource`, with their columns. */
export const usageColumns = sql`u (account_id, at, key_id, model, endpoint, requests, errors, input_tokens, output_tokens, cost_micros)`

/**
 * A query for the usage of ended calls that were admitted within the range. Whole hours come from
 * `ledger_usage`. Where the range cuts an hour, the calls of the smaller part are read from
 * `ledger_call` and added to, or subtracted from, the sum of that hour. There are no calls after
 * now, so a later end cuts no hour. Requests that were refused before they were calls are added as
 * errors.
 */
export const usageSource = ({
  account,
  mode,
  fromMs,
  toMs,
  nowMs,
}: UsageSource): RawBuilder<unknown> => {
  const owner = account === undefined ? sql`` : sql`account_id = ${account} AND `
  const hours = (from: number, to: number) => sql`
    SELECT account_id, hour, key_id, model, endpoint, requests, errors, input_tokens, output_tokens, cost_micros
    FROM ledger_usage WHERE ${owner}mode = ${mode} AND hour >= ${new Date(from)} AND hour < ${new Date(to)}`
  const calls = (from: number, to: number, sign: "" | "-" = "") => {
    const signed = (value: string) => sql.raw(`${sign}${value}`)
    return sql`
    SELECT account_id, ledger_hour(admitted_at), key_id, coalesce(model, ''), endpoint, ${signed("1")}, ${signed("ledger_failed(state, http_status)::int")}, ${signed("input_tokens")},
      ${signed("output_tokens")}, ${signed("cost_micros")}
    FROM ledger_call WHERE ${owner}mode = ${mode} AND admitted_at >= ${new Date(from)} AND admitted_at < ${new Date(to)}
      AND counts IN ('all', 'money') AND state NOT IN ('open', 'refused')`
  }
  // by the hour only: a range that cuts one has all of its refusals
  const refusals = sql`
    SELECT account_id, hour, key_id, model, endpoint, requests, requests, 0, 0, 0
    FROM ledger_refusal WHERE ${owner}mode = ${mode} AND hour >= ${new Date(before(fromMs))} AND hour < ${new Date(toMs)}`
  const endMs = toMs > nowMs ? after(toMs) : toMs
  if (before(fromMs) === before(endMs)) return sql`${calls(fromMs, endMs)} UNION ALL ${refusals}`
  const [begin, end] = [nearest(fromMs), nearest(endMs)]
  const edges = [
    ...(begin < fromMs
      ? [calls(begin, fromMs, "-")]
      : fromMs < begin
        ? [calls(fromMs, begin)]
        : []),
    ...(end < endMs ? [calls(end, endMs)] : endMs < end ? [calls(endMs, end, "-")] : []),
  ]
  return sql.join([hours(begin, end), ...edges, refusals], sql` UNION ALL `)
}
