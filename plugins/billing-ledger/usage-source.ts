import { type RawBuilder, sql } from "kysely"

export interface UsageSource {
  /** All accounts unless told. */
  readonly account?: string
  readonly mode: "live" | "test"
  readonly fromMs: number
  /** The first ms that is not in it. */
  readonly toMs: number
  readonly nowMs: number
}

const hourMs = 3_600_000
const before = (ms: number) => Math.floor(ms / hourMs) * hourMs
const after = (ms: number) => Math.ceil(ms / hourMs) * hourMs
const nearest = (ms: number) => Math.round(ms / hourMs) * hourMs

/** The name of a row, and those of its columns. */
export const usageColumns = sql`u (account_id, at, key_id, model, endpoint, requests, errors, input_tokens, output_tokens, cost_micros)`

/**
 * What ended, of calls that were admitted in exactly this time: whole hours from the sums that are kept; where the range cuts an hour, the calls of its
 * smaller part one by one, which are added to the hours, or taken from them. Nothing comes after now, so a range that ends later cuts none.
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
      AND counts <> 'rpm' AND state NOT IN ('open', 'refused')`
  }
  const endMs = toMs > nowMs ? after(toMs) : toMs
  if (before(fromMs) === before(endMs)) return calls(fromMs, endMs)
  const [begin, end] = [nearest(fromMs), nearest(endMs)]
  const edges = [
    ...(begin < fromMs
      ? [calls(begin, fromMs, "-")]
      : fromMs < begin
        ? [calls(fromMs, begin)]
        : []),
    ...(end < endMs ? [calls(end, endMs)] : endMs < end ? [calls(endMs, end, "-")] : []),
  ]
  return sql.join([hours(begin, end), ...edges], sql` UNION ALL `)
}
