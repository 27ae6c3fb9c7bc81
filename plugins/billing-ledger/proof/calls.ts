import { sql } from "kysely"
import { countOf, type Invariant, type ProofContext, within } from "./invariant.ts"

const held: Invariant = {
  says: "what an account holds is the holds of its open calls",
  rows: countOf(sql`ledger_account`),
  breaches: sql`
    SELECT format('account %s: held %s, its open calls hold %s', coalesce(a.account_id, s.account_id), coalesce(a.held_micros, 0), coalesce(s.micros, 0)) AS detail
    FROM ledger_account a FULL JOIN (SELECT account_id, sum(hold_micros) AS micros FROM ledger_call WHERE state = 'open' GROUP BY account_id) s ON s.account_id = a.account_id
    WHERE coalesce(a.held_micros, 0) <> coalesce(s.micros, 0) ORDER BY 1`,
}

const withinHold: Invariant = {
  says: "no call cost more than its hold, and only settled calls cost anything",
  rows: countOf(sql`ledger_call`),
  breaches: sql`
    SELECT format('call %s (%s): cost %s, hold %s', id, state, cost_micros, hold_micros) AS detail FROM ledger_call
    WHERE (cost_micros BETWEEN 0 AND hold_micros AND (state = 'settled' OR cost_micros = 0)) IS NOT TRUE ORDER BY id`,
}

/** The usage of one model, with the fields that `costOf` of core/pricing.ts counts; older calls have no seconds of audio. */
const used = sql`jsonb_to_record(used) AS r ("inputTokens" numeric, "outputTokens" numeric, "cacheReadTokens" numeric, "cacheWriteTokens" numeric, images numeric, "audioSeconds" numeric, "searchUnits" numeric)`
const count = (field: string) => sql`greatest(0, ceil(coalesce(${sql.ref(field)}, 0)))`

/**
 * The formula of `costOf`: with prices in nano-rupiah all terms are whole femto-rupiah, rounded up
 * once, to a micro-rupiah. `div` is exact.
 */
const priced = sql`
  SELECT div(coalesce(sum(
      (${count("inputTokens")} - ${count("cacheReadTokens")} - ${count("cacheWriteTokens")}) * p.input + ${count("cacheReadTokens")} * p."cacheRead"
      + ${count("cacheWriteTokens")} * p."cacheWrite" + ${count("outputTokens")} * p.output + (${count("images")} * p.image + ${count("audioSeconds")} * coalesce(p."audioSecond", 0) + ${count("searchUnits")} * p."searchUnit") * 1000000
    ) * 1000000000, 0) * round((c.prices->>'factor')::numeric * 1000) + 999999999999, 1000000000000) AS micros
  FROM jsonb_each(c.usage) u(name, used), ${used},
    json_to_record(c.prices->'models'->u.name) AS p (input numeric, output numeric, "cacheRead" numeric, "cacheWrite" numeric, image numeric, "audioSecond" numeric, "searchUnit" numeric)`

const costs: Invariant = {
  says: "each call cost what its usage and its prices come to, at most its hold (a late one at most that)",
  rows: countOf(sql`ledger_call WHERE state = 'settled' AND prices IS NOT NULL`),
  breaches: (slice) => sql`
    SELECT format('call %s cost %s; its usage comes to %s, its hold is %s', c.id, c.cost_micros, p.micros, c.hold_micros) AS detail
    FROM ledger_call c CROSS JOIN LATERAL (${priced}) p, LATERAL (SELECT least(c.hold_micros, greatest(0, p.micros)) AS micros) due
    WHERE c.state = 'settled' AND c.prices IS NOT NULL AND ${within("c.id", slice)}
      AND CASE WHEN c.late THEN c.cost_micros > due.micros ELSE c.cost_micros <> due.micros END ORDER BY c.id`,
}

export const tokens: Invariant = {
  says: "the tokens of each call are those of its usage",
  rows: countOf(sql`ledger_call`),
  breaches: (slice) => sql`
    SELECT format('call %s (%s): %s and %s tokens, its usage says %s and %s', c.id, c.state, c.input_tokens, c.output_tokens, u.input, u.output) AS detail
    FROM ledger_call c CROSS JOIN LATERAL (
      SELECT coalesce(sum(${count("inputTokens")}), 0) AS input, coalesce(sum(${count("outputTokens")}), 0) AS output
      FROM jsonb_each(CASE c.state WHEN 'settled' THEN c.usage END) e(name, used), ${used}) u
    WHERE (c.input_tokens <> u.input OR c.output_tokens <> u.output) AND ${within("c.id", slice)} ORDER BY c.id`,
}

const hour = sql`account_id, mode, hour, key_id, model, endpoint`

/** Hours of usage that differ from the sums of their calls; either side may be missing. */
export const differingHours = sql`
  SELECT ${hour}, (u.requests, u.errors, u.input_tokens, u.output_tokens, u.cost_micros)::text AS said, (c.requests, c.errors, c.input_tokens, c.output_tokens, c.cost_micros)::text AS summed
  FROM ledger_usage u FULL JOIN (
    SELECT account_id, mode, ledger_hour(admitted_at) AS hour, key_id, coalesce(model, '') AS model, endpoint, count(*) AS requests,
      count(*) FILTER (WHERE ledger_failed(state, http_status)) AS errors, sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens, sum(cost_micros) AS cost_micros
    FROM ledger_call WHERE counts IN ('all', 'money') AND state NOT IN ('open', 'refused') GROUP BY 1, 2, 3, 4, 5, 6) c USING (${hour})
  WHERE (u.requests = c.requests AND u.errors = c.errors AND u.input_tokens = c.input_tokens AND u.output_tokens = c.output_tokens AND u.cost_micros = c.cost_micros) IS NOT TRUE`

export const hours: Invariant = {
  says: "each hour of usage is the sum of its calls that ended",
  rows: countOf(sql`ledger_usage`),
  breaches: sql`
    SELECT format('hour %s of account %s, key %s, model %s, endpoint %s: %s, its calls come to %s', hour, account_id, key_id, model, endpoint, said, summed) AS detail
    FROM (${differingHours}) h ORDER BY 1`,
}

/**
 * Open calls that a sweep should have expired: the lease of their replica or their own time is
 * over, and some replica has been alive to sweep since then. The calls of a replica without a row
 * were admitted after it was swept. Two sweep intervals are allowed, as a sweep may be under way.
 */
export const overdue = ({ now, leaseMs, sweepMs }: ProofContext): Invariant => ({
  says: "no call is open beyond its own time, or beyond the lease of its replica",
  rows: countOf(sql`ledger_call WHERE state = 'open'`),
  breaches: sql`
    SELECT format('call %s of account %s is open since %s', id, account_id, admitted_at) AS detail FROM (
      SELECT c.id, c.account_id, c.admitted_at,
        least(c.expires_at, CASE WHEN r.id IS NULL THEN c.admitted_at + ${leaseMs} * interval '1 ms' ELSE r.lease_until END) AS over_at,
        (SELECT min(started_at) FROM ledger_replica WHERE lease_until > ${now}) AS swept_since
      FROM ledger_call c LEFT JOIN ledger_replica r ON r.id = c.replica_id WHERE c.state = 'open') o
    WHERE greatest(over_at, swept_since) + ${2 * sweepMs} * interval '1 ms' < ${now} AND swept_since IS NOT NULL ORDER BY id`,
})

export const callInvariants = (context: ProofContext): readonly Invariant[] => [
  held,
  withinHold,
  costs,
  tokens,
  hours,
  overdue(context),
]
