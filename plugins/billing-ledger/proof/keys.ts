import { sql } from "kysely"
import { countOf, type Invariant, type ProofContext } from "./invariant.ts"

const slots: Invariant = {
  says: "the slots that a key has in use are its open calls",
  rows: countOf(sql`ledger_key`),
  breaches: sql`
    SELECT format('key %s: %s slots, %s open calls', coalesce(k.key_id, c.key_id), coalesce(k.open_calls, 0), coalesce(c.n, 0)) AS detail
    FROM ledger_key k FULL JOIN (SELECT key_id, count(*) AS n FROM ledger_call WHERE state = 'open' AND counts IN ('all', 'spare') GROUP BY key_id) c ON c.key_id = k.key_id
    WHERE coalesce(k.open_calls, 0) <> coalesce(c.n, 0) ORDER BY 1`,
}

const months: Invariant = {
  says: "what a key spent and holds in its month is that of its calls",
  rows: countOf(sql`ledger_key`),
  breaches: sql`
    SELECT format('key %s in %s: spent %s, held %s; its calls come to %s and %s', key_id, month, spent_micros, held_micros, spent, held) AS detail FROM (
      SELECT k.key_id, k.month, k.spent_micros, k.held_micros, coalesce(sum(c.cost_micros), 0) AS spent, coalesce(sum(c.hold_micros) FILTER (WHERE c.state = 'open'), 0) AS held
      FROM ledger_key k LEFT JOIN ledger_call c ON c.key_id = k.key_id AND ledger_month(c.admitted_at) = k.month GROUP BY k.key_id) m
    WHERE spent_micros <> spent OR held_micros <> held ORDER BY key_id`,
}

const days: Invariant = {
  says: "the calls of a key's day are counted",
  rows: countOf(sql`ledger_key`),
  breaches: sql`
    SELECT format('key %s on %s: %s counted, %s calls', key_id, day, day_calls, n) AS detail FROM (
      SELECT k.key_id, k.day, k.day_calls, count(c.id) AS n FROM ledger_key k
        LEFT JOIN ledger_call c ON c.key_id = k.key_id AND c.counts IN ('all', 'spare') AND c.state <> 'refused' AND (c.admitted_at AT TIME ZONE 'UTC')::date = k.day GROUP BY k.key_id) d
    WHERE day_calls <> n ORDER BY key_id`,
}

/** The ordinals of calls that left the minute mean nothing any more. */
const minutes = ({ now }: ProofContext): Invariant => {
  const minute = sql`ledger_call c JOIN ledger_key k USING (key_id) WHERE c.ordinal IS NOT NULL AND c.admitted_at > greatest(${now}, k.last_at) - interval '60 s'`
  return {
    says: "the ordinals of a key's rolling minute have no gap, and the last is what the key has counted",
    rows: countOf(minute),
    breaches: sql`
      SELECT format('call %s of key %s has ordinal %s, next is %s', id, key_id, ordinal, next) AS detail FROM (
        SELECT c.id, c.key_id, c.ordinal, lead(c.ordinal, 1, k.calls + 1) OVER (PARTITION BY c.key_id ORDER BY c.admitted_at, c.ordinal) AS next FROM ${minute}) m
      WHERE next <> ordinal + 1 ORDER BY key_id, ordinal`,
  }
}

export const keyInvariants = (context: ProofContext): readonly Invariant[] => [
  slots,
  months,
  days,
  minutes(context),
]
