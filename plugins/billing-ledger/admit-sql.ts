import { sql } from "kysely"

/** Plans are kept for a connection's life: one that was made while the tables were empty must still be right when they are large. */
export const byIndex = sql`SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off`

/**
 * How the minute is counted in O(log n): every counted call carries its ordinal, so the window holds `calls - ordinal of its first call + 1`.
 * A call that gives itself back closes the gap that it leaves (see `ledger_uncount`).
 */
const rate = sql`
CREATE FUNCTION ledger_rate(key ledger_key, at timestamptz, OUT used bigint, OUT oldest timestamptz, OUT newest timestamptz) LANGUAGE plpgsql STABLE AS $$
DECLARE first_ordinal bigint;
BEGIN
  SELECT c.ordinal, c.admitted_at INTO first_ordinal, oldest FROM ledger_call c
    WHERE c.key_id = key.key_id AND c.ordinal IS NOT NULL AND c.admitted_at > at - interval '60 s' ORDER BY c.admitted_at, c.ordinal LIMIT 1;
  used := coalesce(key.calls - first_ordinal + 1, 0);
  IF used > 0 THEN
    SELECT c.admitted_at INTO newest FROM ledger_call c
      WHERE c.key_id = key.key_id AND c.ordinal IS NOT NULL ORDER BY c.admitted_at DESC LIMIT 1;
  END IF;
END $$`

const milliseconds = sql`
CREATE FUNCTION ledger_ms(span interval) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT ceil(extract(epoch FROM span) * 1000)::bigint $$`

/** An account without a row has balance 0, but only a row can be locked. The account's lock guards its keys, so every path locks accounts first, in order. */
const lock = sql`
CREATE FUNCTION ledger_lock(accounts text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO ledger_account (account_id)
    SELECT DISTINCT x FROM unnest(accounts) x WHERE NOT EXISTS (SELECT 1 FROM ledger_account a WHERE a.account_id = x) ORDER BY x ON CONFLICT DO NOTHING;
  PERFORM 1 FROM ledger_account WHERE account_id = ANY (accounts) ORDER BY account_id FOR UPDATE;
END $$`

/**
 * Several admissions in one statement, in order. In plpgsql each statement inside sees what was committed while it waited for the lock;
 * one plain statement would count with the snapshot from before the wait, and let too many in.
 */
const admit = sql`
CREATE FUNCTION ledger_admit(requests json, replica uuid, clock timestamptz)
RETURNS TABLE (call_id uuid, refusal text, remaining bigint, reset_ms bigint, retry_after_ms bigint) LANGUAGE plpgsql ${byIndex} AS $$
#variable_conflict use_column
DECLARE r record; w record; b ledger_account; k ledger_key; m ledger_key_month; at timestamptz; today date; this_month date; today_calls int; whole int; minute int;
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true); -- a hold is no money; the settlement flushes it with itself
  PERFORM ledger_lock(array_agg(x.account_id)) FROM json_to_recordset(requests) AS x (account_id text, counts text) WHERE x.counts <> 'none';
  INSERT INTO ledger_key (key_id) SELECT DISTINCT x.key_id FROM json_to_recordset(requests) AS x (key_id text, counts text)
    WHERE x.counts <> 'none' AND NOT EXISTS (SELECT 1 FROM ledger_key y WHERE y.key_id = x.key_id) ON CONFLICT DO NOTHING;
  FOR r IN SELECT * FROM json_to_recordset(requests) AS x (id uuid, account_id text, key_id text, mode text, counts text, hold_micros bigint, endpoint text,
      request_id text, parent_id text, rpm bigint, rpd bigint, slots bigint, cap_micros bigint) LOOP
    SELECT * INTO k FROM ledger_key WHERE key_id = r.key_id;
    at := greatest(clock, k.last_at); -- clocks of replicas differ a little; a key's own time never goes back
    today := (at AT TIME ZONE 'UTC')::date;
    this_month := date_trunc('month', today::timestamp)::date;
    today_calls := CASE WHEN k.day = today THEN k.day_calls ELSE 0 END;
    whole := (r.counts = 'all')::int;
    minute := (r.counts IN ('all', 'rpm'))::int;
    SELECT * INTO w FROM ledger_rate(k, at);
    IF r.hold_micros > 0 THEN
      SELECT * INTO b FROM ledger_account WHERE account_id = r.account_id;
      SELECT * INTO m FROM ledger_key_month WHERE key_id = r.key_id AND month = this_month;
    END IF;
    call_id := r.id;
    refusal := CASE
      WHEN minute = 1 AND w.used >= r.rpm THEN 'rpm'
      WHEN whole = 1 AND today_calls >= r.rpd THEN 'rpd'
      WHEN whole = 1 AND k.open_calls >= r.slots THEN 'concurrency'
      WHEN r.hold_micros > 0 AND r.cap_micros > 0 AND r.hold_micros > r.cap_micros - coalesce(m.spent_micros, 0) - coalesce(m.held_micros, 0) THEN 'monthly_cap'
      WHEN r.hold_micros > 0 AND r.hold_micros > b.balance_micros - b.held_micros THEN 'balance'
    END;
    retry_after_ms := CASE refusal
      WHEN 'rpm' THEN ledger_ms(coalesce(w.oldest, at) + interval '60 s' - at)
      WHEN 'rpd' THEN ledger_ms((today + 1)::timestamp AT TIME ZONE 'UTC' - at)
      WHEN 'concurrency' THEN 1000
      WHEN 'monthly_cap' THEN ledger_ms((this_month + interval '1 month') AT TIME ZONE 'UTC' - at)
      ELSE 0
    END;
    IF refusal IS NULL AND r.counts <> 'none' THEN
      IF minute = 1 THEN
        UPDATE ledger_key SET calls = calls + 1, last_at = at, day = today, day_calls = today_calls + whole, open_calls = open_calls + whole WHERE key_id = r.key_id;
      END IF;
      IF r.hold_micros > 0 THEN
        UPDATE ledger_account SET held_micros = held_micros + r.hold_micros WHERE account_id = r.account_id;
        INSERT INTO ledger_key_month AS x (key_id, month, held_micros) VALUES (r.key_id, this_month, r.hold_micros)
          ON CONFLICT (key_id, month) DO UPDATE SET held_micros = x.held_micros + r.hold_micros;
      END IF;
      INSERT INTO ledger_call (id, account_id, key_id, mode, counts, state, ordinal, admitted_at, settled_at, replica_id, parent_id, endpoint, request_id, hold_micros)
        VALUES (r.id, r.account_id, r.key_id, r.mode, r.counts, CASE r.counts WHEN 'rpm' THEN 'settled' ELSE 'open' END,
          CASE minute WHEN 1 THEN k.calls + 1 END, at, CASE r.counts WHEN 'rpm' THEN at END, replica, r.parent_id, r.endpoint, r.request_id, r.hold_micros);
      IF minute = 1 THEN
        w.used := w.used + 1;
        w.newest := at;
      END IF;
    END IF;
    remaining := greatest(r.rpm - w.used, 0);
    reset_ms := greatest(coalesce(ledger_ms(w.newest + interval '60 s' - at), 0), 0);
    RETURN NEXT;
  END LOOP;
END $$`

export const admitFunctions = [milliseconds, rate, lock, admit]
