-- Admits several calls in one statement; those of one key in their order. It is plpgsql because each
-- statement inside sees what was committed while it waited for the lock; a single plain statement
-- would count with the snapshot from before the wait and admit too many.
--
-- The minute is counted in O(log n): every counted call carries its ordinal, so the window holds
-- `calls - ordinal of its oldest call + 1` calls. A call that is given back closes the gap it leaves
-- (ledger_uncount).
--
-- A connection keeps its plans: one made while the tables were empty must still be right when they are
-- large. So only index scans and nested loops are allowed.
CREATE OR REPLACE FUNCTION ledger_admit(requests json, replica uuid, clock timestamptz)
RETURNS SETOF ledger_verdict LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  same_key record; -- the requests of one key
  counters record; -- the row of that key, and what its account may still hold
  request ledger_request;
  verdict ledger_verdict;
  verdicts ledger_verdict[] := '{}';
  new_call ledger_call;
  new_calls ledger_call[] := '{}';
  new_holds bigint; -- of this key, in micros
  admitted int; -- of this key
  takes_slot int; -- 1: counts for the day and for concurrency
  takes_minute int; -- 1: counts for the minute
  at timestamptz;
  today date;
  this_month date;
  in_minute bigint;
  oldest record;
  oldest_at timestamptz;
  newest_at timestamptz;
  write_began timestamptz;
  write_time interval := '0';
BEGIN
  -- a hold is no money yet; the settlement flushes it together with itself
  PERFORM set_config('synchronous_commit', 'off', true);
  -- 'none' is the word for 'peek' of servers that were not updated yet
  PERFORM ledger_lock(array_agg(x.account_id))
    FROM json_populate_recordset(NULL::ledger_request, requests) x
    WHERE x.counts NOT IN ('peek', 'none');
  FOR same_key IN
    SELECT x.account_id, x.key_id, array_agg(x ORDER BY x.place) AS requests,
        bool_or(x.counts NOT IN ('peek', 'none')) AS writes
      FROM json_populate_recordset(NULL::ledger_request, requests) x GROUP BY 1, 2
  LOOP
    LOOP
      SELECT y.*, coalesce(a.balance_micros - a.held_micros, 0) AS free_micros INTO counters
        FROM (SELECT) one
        LEFT JOIN ledger_key y ON y.key_id = same_key.key_id
        LEFT JOIN ledger_account a ON a.account_id = same_key.account_id;
      EXIT WHEN counters.key_id IS NOT NULL OR NOT same_key.writes;
      INSERT INTO ledger_key (key_id) VALUES (same_key.key_id) ON CONFLICT DO NOTHING;
    END LOOP;
    -- the clocks of replicas differ a little; the time of a key never goes back
    at := greatest(clock, counters.last_at);
    today := (at AT TIME ZONE 'UTC')::date;
    this_month := date_trunc('month', today::timestamp)::date;
    IF counters.day <> today THEN counters.day_calls := 0; END IF;
    IF counters.month <> this_month THEN
      counters.spent_micros := 0;
      counters.held_micros := 0;
    END IF;
    SELECT x.ordinal, x.admitted_at INTO oldest FROM ledger_call x
      WHERE x.key_id = same_key.key_id AND x.ordinal IS NOT NULL
        AND x.admitted_at > at - interval '60 s'
      ORDER BY x.admitted_at, x.ordinal LIMIT 1;
    in_minute := coalesce(counters.calls - oldest.ordinal + 1, 0);
    oldest_at := oldest.admitted_at;
    newest_at := NULL;
    new_holds := 0;
    admitted := 0;

    FOREACH request IN ARRAY same_key.requests LOOP
      takes_slot := (request.counts = 'all')::int;
      takes_minute := (request.counts IN ('all', 'rpm'))::int;
      verdict.place := request.place;
      verdict.refusal := CASE
        WHEN takes_minute = 1 AND in_minute >= request.rpm THEN 'rpm'
        WHEN takes_slot = 1 AND counters.day_calls >= request.rpd THEN 'rpd'
        WHEN takes_slot = 1 AND counters.open_calls >= request.slots THEN 'concurrency'
        WHEN request.hold_micros > 0 AND request.cap_micros > 0
          AND request.hold_micros >
            request.cap_micros - coalesce(counters.spent_micros + counters.held_micros, 0)
          THEN 'monthly_cap'
        WHEN request.hold_micros > 0 AND request.hold_micros > counters.free_micros - new_holds
          THEN 'balance'
      END;

      IF verdict.refusal IS NULL AND request.counts NOT IN ('peek', 'none') THEN
        in_minute := in_minute + takes_minute;
        counters.calls := counters.calls + takes_minute;
        counters.day_calls := counters.day_calls + takes_slot;
        counters.open_calls := counters.open_calls + takes_slot;
        counters.held_micros := counters.held_micros + request.hold_micros;
        new_holds := new_holds + request.hold_micros;
        admitted := admitted + 1;
        IF takes_minute = 1 THEN
          oldest_at := coalesce(oldest_at, at);
          newest_at := at;
        END IF;
        new_call.id := request.id;
        new_call.account_id := request.account_id;
        new_call.key_id := request.key_id;
        new_call.mode := request.mode;
        new_call.counts := request.counts;
        new_call.endpoint := request.endpoint;
        new_call.request_id := request.request_id;
        new_call.parent_id := request.parent_id;
        new_call.model := request.model;
        new_call.prices := request.prices;
        new_call.expires_at := request.expires_at;
        new_call.replica_id := replica;
        new_call.hold_micros := request.hold_micros;
        new_call.cost_micros := 0;
        new_call.input_tokens := 0;
        new_call.output_tokens := 0;
        new_call.late := false;
        new_call.state := CASE request.counts WHEN 'rpm' THEN 'settled' ELSE 'open' END;
        new_call.ordinal := CASE takes_minute WHEN 1 THEN counters.calls END;
        new_call.admitted_at := at;
        new_call.settled_at := CASE request.counts WHEN 'rpm' THEN at END;
        new_calls := new_calls || new_call;
      END IF;

      IF newest_at IS NULL AND in_minute > 0 THEN
        SELECT x.admitted_at INTO newest_at FROM ledger_call x
          WHERE x.key_id = same_key.key_id AND x.ordinal IS NOT NULL
          ORDER BY x.admitted_at DESC LIMIT 1;
      END IF;
      verdict.remaining := greatest(request.rpm - in_minute, 0);
      verdict.reset_ms :=
        CASE WHEN in_minute > 0 THEN ledger_ms(newest_at + interval '60 s' - at) ELSE 0 END;
      verdict.retry_after_ms := CASE verdict.refusal
        WHEN 'rpm' THEN ledger_ms(coalesce(oldest_at, at) + interval '60 s' - at)
        WHEN 'rpd' THEN ledger_ms((today + 1)::timestamp AT TIME ZONE 'UTC' - at)
        WHEN 'concurrency' THEN 1000
        WHEN 'monthly_cap' THEN
          ledger_ms((this_month + interval '1 month') AT TIME ZONE 'UTC' - at)
        ELSE 0
      END;
      verdicts := verdicts || verdict;
    END LOOP;

    -- clock_timestamp() measures a duration here; the time of day is always a parameter
    write_began := clock_timestamp();
    IF admitted > 0 THEN
      UPDATE ledger_key SET calls = counters.calls, last_at = at, day = today,
          day_calls = counters.day_calls, open_calls = counters.open_calls, month = this_month,
          spent_micros = counters.spent_micros, held_micros = counters.held_micros
        WHERE key_id = same_key.key_id;
    END IF;
    IF new_holds > 0 THEN
      UPDATE ledger_account SET held_micros = held_micros + new_holds
        WHERE account_id = same_key.account_id;
    END IF;
    write_time := write_time + (clock_timestamp() - write_began);
  END LOOP;
  write_began := clock_timestamp();
  INSERT INTO ledger_call SELECT * FROM unnest(new_calls);
  write_time := write_time + (clock_timestamp() - write_began);
  RETURN QUERY
    SELECT x.place, x.refusal, x.remaining, x.reset_ms, x.retry_after_ms,
        (extract(epoch FROM write_time) * 1000000)::bigint
      FROM unnest(verdicts) x;
END
$$;
