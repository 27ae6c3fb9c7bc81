import { sql } from "kysely"

/** Plans are kept for a connection's life: one that was made while the tables were empty must still be right when they are large. */
export const byIndex = sql`SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off`

const milliseconds = sql`
CREATE FUNCTION ledger_ms(span interval) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT ceil(extract(epoch FROM span) * 1000)::bigint $$`

/**
 * An account without a row has balance 0, but only a row can be locked. The account's lock guards its keys; every path takes the locks of accounts
 * first, and in order. One at a time: a plan for a whole list may read the whole table.
 */
const lock = sql`
CREATE FUNCTION ledger_lock(accounts text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE account text;
BEGIN
  FOR account IN SELECT DISTINCT x FROM unnest(accounts) x ORDER BY x LOOP
    LOOP
      PERFORM 1 FROM ledger_account WHERE account_id = account FOR UPDATE;
      EXIT WHEN FOUND;
      INSERT INTO ledger_account (account_id) VALUES (account) ON CONFLICT DO NOTHING;
    END LOOP;
  END LOOP;
END $$`

const request = sql`
CREATE TYPE ledger_request AS (place int, id uuid, account_id text, key_id text, mode text, counts text, hold_micros bigint, endpoint text, request_id text,
  parent_id text, model text, prices json, expires_at timestamptz, rpm bigint, rpd bigint, slots bigint, cap_micros bigint)`

/** `hold_us`: how long the statement took to write slots and holds, in microseconds; the rest of it was checking. */
const verdict = sql`
CREATE TYPE ledger_verdict AS (place int, refusal text, remaining bigint, reset_ms bigint, retry_after_ms bigint, hold_us bigint)`

/**
 * Several admissions in one statement; those of one key in their order. In plpgsql each statement inside sees what was committed while it waited for
 * the lock; one plain statement would count with the snapshot from before the wait, and let too many in.
 *
 * The minute is counted in O(log n): every counted call carries its ordinal, so the window holds `calls - ordinal of its oldest call + 1`.
 * A call that is given back closes the gap that it leaves (`ledger_uncount`).
 */
const admit = sql`
CREATE FUNCTION ledger_admit(requests json, replica uuid, clock timestamptz)
RETURNS SETOF ledger_verdict LANGUAGE plpgsql ${byIndex} AS $$
#variable_conflict use_column
DECLARE g record; r ledger_request; k record; c ledger_call; admitted ledger_call[] := '{}'; v ledger_verdict; verdicts ledger_verdict[] := '{}';
  at timestamptz; today date; this_month date;
  used bigint; oldest record; oldest_at timestamptz; newest_at timestamptz; held bigint; counted int; whole int; minute int;
  wrote_from timestamptz; wrote interval := '0';
BEGIN
  PERFORM set_config('synchronous_commit', 'off', true); -- a hold is no money; the settlement flushes it with itself
  PERFORM ledger_lock(array_agg(x.account_id)) FROM json_populate_recordset(NULL::ledger_request, requests) x WHERE x.counts <> 'none';
  FOR g IN SELECT x.account_id, x.key_id, array_agg(x ORDER BY x.place) AS requests, bool_or(x.counts <> 'none') AS writes
      FROM json_populate_recordset(NULL::ledger_request, requests) x GROUP BY 1, 2 LOOP
    LOOP
      SELECT y.*, coalesce(a.balance_micros - a.held_micros, 0) AS free_micros INTO k
        FROM (SELECT) one LEFT JOIN ledger_key y ON y.key_id = g.key_id LEFT JOIN ledger_account a ON a.account_id = g.account_id;
      EXIT WHEN k.key_id IS NOT NULL OR NOT g.writes;
      INSERT INTO ledger_key (key_id) VALUES (g.key_id) ON CONFLICT DO NOTHING;
    END LOOP;
    at := greatest(clock, k.last_at); -- clocks of replicas differ a little; a key's own time never goes back
    today := (at AT TIME ZONE 'UTC')::date;
    this_month := date_trunc('month', today::timestamp)::date;
    IF k.day <> today THEN k.day_calls := 0; END IF;
    IF k.month <> this_month THEN k.spent_micros := 0; k.held_micros := 0; END IF;
    SELECT x.ordinal, x.admitted_at INTO oldest FROM ledger_call x
      WHERE x.key_id = g.key_id AND x.ordinal IS NOT NULL AND x.admitted_at > at - interval '60 s' ORDER BY x.admitted_at, x.ordinal LIMIT 1;
    used := coalesce(k.calls - oldest.ordinal + 1, 0);
    oldest_at := oldest.admitted_at;
    newest_at := NULL;
    held := 0;
    counted := 0;
    FOREACH r IN ARRAY g.requests LOOP
      whole := (r.counts = 'all')::int;
      minute := (r.counts IN ('all', 'rpm'))::int;
      v.place := r.place;
      v.refusal := CASE
        WHEN minute = 1 AND used >= r.rpm THEN 'rpm'
        WHEN whole = 1 AND k.day_calls >= r.rpd THEN 'rpd'
        WHEN whole = 1 AND k.open_calls >= r.slots THEN 'concurrency'
        WHEN r.hold_micros > 0 AND r.cap_micros > 0 AND r.hold_micros > r.cap_micros - coalesce(k.spent_micros + k.held_micros, 0) THEN 'monthly_cap'
        WHEN r.hold_micros > 0 AND r.hold_micros > k.free_micros - held THEN 'balance'
      END;
      IF v.refusal IS NULL AND r.counts <> 'none' THEN
        used := used + minute;
        k.calls := k.calls + minute;
        k.day_calls := k.day_calls + whole;
        k.open_calls := k.open_calls + whole;
        k.held_micros := k.held_micros + r.hold_micros;
        held := held + r.hold_micros;
        counted := counted + 1;
        IF minute = 1 THEN oldest_at := coalesce(oldest_at, at); newest_at := at; END IF;
        c.id := r.id; c.account_id := r.account_id; c.key_id := r.key_id; c.mode := r.mode; c.counts := r.counts; c.endpoint := r.endpoint;
        c.request_id := r.request_id; c.parent_id := r.parent_id; c.model := r.model; c.prices := r.prices; c.expires_at := r.expires_at;
        c.replica_id := replica; c.hold_micros := r.hold_micros; c.cost_micros := 0; c.input_tokens := 0; c.output_tokens := 0; c.late := false;
        c.state := CASE r.counts WHEN 'rpm' THEN 'settled' ELSE 'open' END;
        c.ordinal := CASE minute WHEN 1 THEN k.calls END;
        c.admitted_at := at;
        c.settled_at := CASE r.counts WHEN 'rpm' THEN at END;
        admitted := admitted || c;
      END IF;
      IF newest_at IS NULL AND used > 0 THEN
        SELECT x.admitted_at INTO newest_at FROM ledger_call x WHERE x.key_id = g.key_id AND x.ordinal IS NOT NULL ORDER BY x.admitted_at DESC LIMIT 1;
      END IF;
      v.remaining := greatest(r.rpm - used, 0);
      v.reset_ms := CASE WHEN used > 0 THEN ledger_ms(newest_at + interval '60 s' - at) ELSE 0 END;
      v.retry_after_ms := CASE v.refusal
        WHEN 'rpm' THEN ledger_ms(coalesce(oldest_at, at) + interval '60 s' - at)
        WHEN 'rpd' THEN ledger_ms((today + 1)::timestamp AT TIME ZONE 'UTC' - at)
        WHEN 'concurrency' THEN 1000
        WHEN 'monthly_cap' THEN ledger_ms((this_month + interval '1 month') AT TIME ZONE 'UTC' - at)
        ELSE 0
      END;
      verdicts := verdicts || v;
    END LOOP;
    wrote_from := clock_timestamp(); -- a duration is measured, no time of day is taken
    IF counted > 0 THEN
      UPDATE ledger_key SET calls = k.calls, last_at = at, day = today, day_calls = k.day_calls, open_calls = k.open_calls,
        month = this_month, spent_micros = k.spent_micros, held_micros = k.held_micros WHERE key_id = g.key_id;
    END IF;
    IF held > 0 THEN UPDATE ledger_account SET held_micros = held_micros + held WHERE account_id = g.account_id; END IF;
    wrote := wrote + (clock_timestamp() - wrote_from);
  END LOOP;
  wrote_from := clock_timestamp();
  INSERT INTO ledger_call SELECT * FROM unnest(admitted);
  wrote := wrote + (clock_timestamp() - wrote_from);
  RETURN QUERY SELECT x.place, x.refusal, x.remaining, x.reset_ms, x.retry_after_ms, (extract(epoch FROM wrote) * 1000000)::bigint FROM unnest(verdicts) x;
END $$`

export const admitFunctions = [milliseconds, lock, request, verdict, admit]
