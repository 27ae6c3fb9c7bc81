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

/** The name of a row, and those of its columns. */
export const usageColumns = sql`u (account_id, at, key_id, model, endpoint, requests, errors, input_tokens, output_tokens, cost_micros)`

/**
 * What ended, of calls that were admitted in exactly this time: whole hours from the sums that are kept, calls one by one where the range cuts
 * an hour. Nothing comes after now, so a range that ends later cuts none.
 */
export const usageSource = ({ account, mode, fromMs, toMs, nowMs }: UsageSource): RawBuilder<unknown> => {
  const owner = account === undefined ? sql`` : sql`account_id = ${account} AND `
  const hours = (from: number, to: number) => sql`
    SELECT account_id, hour, key_id, model, endpoint, requests, errors, input_tokens, output_tokens, cost_micros
    FROM ledger_usage WHERE ${owner}mode = ${mode} AND hour >= ${new Date(from)} AND hour < ${new Date(to)}`
  const calls = (from: number, to: number) => sql`
    SELECT account_id, admitted_at, key_id, coalesce(model, ''), endpoint, 1, ledger_failed(state, http_status)::int, input_tokens, output_tokens, cost_micros
    FROM ledger_call WHERE ${owner}mode = ${mode} AND admitted_at >= ${new Date(from)} AND admitted_at < ${new Date(to)}
      AND counts <> 'rpm' AND state NOT IN ('open', 'refused')`
  const [first, last] = [after(fromMs), toMs > nowMs ? after(toMs) : before(toMs)]
  if (first > last) return calls(fromMs, toMs)
  const edges = [...(fromMs < first ? [calls(fromMs, first)] : []), ...(last < toMs ? [calls(last, toMs)] : [])]
  return sql.join([hours(first, last), ...edges], sql` UNION ALL `)
}
