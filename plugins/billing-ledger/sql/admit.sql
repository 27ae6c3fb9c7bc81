-- Admits several calls in one statement; those of one key in their order. It is plpgsql because each
-- statement inside sees what was committed while it waited for the lock; a single plain statement
-- would count with the snapshot from before the wait and admit too many.
--
-- The minute is counted in O(log n): every counted call carries its ordinal, so the window holds
-- `calls - ordinal of its oldest call + 1` calls. A call that is given back closes the gap it leaves
-- (ledger_uncount_all).
--
-- A spare call is admitted for a request that is still to come, while half of each limit and of the
-- balance is left. A server may use it for `ledger_spare_life` from then on, so the minute of a key
-- that had one is as much longer: calls count from when they were admitted.
--
-- A connection keeps its plans: one made while the tables were empty must still be right when they are
-- large. So only index scans and nested loops are allowed, and plans are kept in any case: PostgreSQL
-- would plan a statement for each call as soon as it takes a group of one for cheaper than others.
--
-- Accounts are locked in the order of their ids, as ledger_lock does, each when its turn comes.
CREATE OR REPLACE FUNCTION ledger_admit(requests json, replica uuid, clock timestamptz)
RETURNS SETOF ledger_verdict LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
  same_key record; -- the requests of one key
  counters record; -- the row of that key, as it is at the time of these requests
  request ledger_request;
  refusal text;
  share int; -- of each limit, that this request may use: a whole, or one half
  takes_slot boolean;
  verdicts ledger_verdict[] := '{}';
  admitted ledger_request[] := '{}';
  ordinals bigint[] := '{}'; -- of those, and when they were admitted
  times timestamptz[] := '{}';
  free_micros bigint; -- what the account may still hold
  spare_micros bigint; -- and for spare calls, with half of the balance left
  was_admitted int; -- before this key
  slots int; -- of this key: taken for the day and for concurrency
  spares int; -- of those
  minute bigint; -- counted for the minute
  holds bigint; -- in micros
  newest_at timestamptz;
  write_began timestamptz;
  write_time interval := '0';
BEGIN
  -- a hold is no money yet; the settlement flushes it together with itself
  PERFORM set_config('synchronous_commit', 'off', true);
  FOR same_key IN
    -- 'none' is the word for 'peek' of servers that were not updated yet
    SELECT x.account_id, x.key_id, array_agg(x ORDER BY x.place) AS requests,
        bool_or(x.counts NOT IN ('peek', 'none')) AS writes
      FROM json_populate_recordset(NULL::ledger_request, requests) x
      GROUP BY 1, 2 ORDER BY 1, 2
  LOOP
    IF same_key.writes THEN
      LOOP
        SELECT balance_micros - held_micros, balance_micros / 2 - held_micros
          INTO free_micros, spare_micros
          FROM ledger_account WHERE account_id = same_key.account_id FOR UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO ledger_account (account_id) VALUES (same_key.account_id)
          ON CONFLICT DO NOTHING;
      END LOOP;
    ELSE
      SELECT balance_micros - held_micros, balance_micros / 2 - held_micros
        INTO free_micros, spare_micros
        FROM ledger_account WHERE account_id = same_key.account_id;
    END IF;
    LOOP
      SELECT y.key_id, n.at, n.today, n.this_month, coalesce(y.calls, 0) AS calls,
          CASE y.day WHEN n.today THEN y.day_calls ELSE 0 END AS day_calls,
          coalesce(y.open_calls, 0) AS open_calls,
          CASE y.month WHEN n.this_month THEN y.spent_micros ELSE 0 END AS spent_micros,
          CASE y.month WHEN n.this_month THEN y.held_micros ELSE 0 END AS held_micros,
          coalesce(y.calls - o.ordinal + 1, 0) AS in_minute, o.admitted_at AS oldest_at, n.minute
        INTO counters
        FROM (SELECT) one
        LEFT JOIN ledger_key y ON y.key_id = same_key.key_id
        -- the clocks of replicas differ a little; the time of a key never goes back
        CROSS JOIN LATERAL (
          SELECT greatest(clock, y.last_at) AS at,
            (greatest(clock, y.last_at) AT TIME ZONE 'UTC')::date AS today,
            ledger_month(greatest(clock, y.last_at)) AS this_month,
            CASE WHEN y.spared_at > greatest(clock, y.last_at) - interval '61 s'
              THEN interval '60 s' + ledger_spare_life() ELSE interval '60 s' END AS minute
        ) n
        LEFT JOIN LATERAL (
          SELECT x.ordinal, x.admitted_at FROM ledger_call x
            WHERE x.key_id = same_key.key_id AND x.ordinal IS NOT NULL
              AND x.admitted_at > n.at - n.minute
            ORDER BY x.admitted_at, x.ordinal LIMIT 1
        ) o ON true;
      EXIT WHEN counters.key_id IS NOT NULL OR NOT same_key.writes;
      INSERT INTO ledger_key (key_id) VALUES (same_key.key_id) ON CONFLICT DO NOTHING;
    END LOOP;
    was_admitted := cardinality(admitted);
    slots := 0;
    spares := 0;
    minute := 0;
    holds := 0;
    newest_at := NULL;

    FOREACH request IN ARRAY same_key.requests LOOP
      share := CASE request.counts WHEN 'spare' THEN 2 ELSE 1 END;
      takes_slot := request.counts IN ('all', 'spare');
      refusal := CASE
        WHEN (takes_slot OR request.counts = 'rpm')
          AND counters.in_minute + minute >= request.rpm / share THEN 'rpm'
        WHEN takes_slot AND counters.day_calls + slots >= request.rpd / share THEN 'rpd'
        WHEN takes_slot AND counters.open_calls + slots >= request.slots / share THEN 'concurrency'
        WHEN request.hold_micros > 0 AND request.cap_micros > 0 AND request.hold_micros >
            request.cap_micros / share - (counters.spent_micros + counters.held_micros + holds)
          THEN 'monthly_cap'
        WHEN request.hold_micros > 0 AND request.hold_micros >
            coalesce(CASE share WHEN 1 THEN free_micros ELSE spare_micros END, 0) - holds
          THEN 'balance'
      END;
      IF refusal IS NULL AND request.counts NOT IN ('peek', 'none') THEN
        holds := holds + request.hold_micros;
        IF takes_slot THEN slots := slots + 1; END IF;
        IF request.counts = 'spare' THEN spares := spares + 1; END IF;
        IF takes_slot OR request.counts = 'rpm' THEN
          minute := minute + 1;
          newest_at := counters.at;
        END IF;
        admitted := admitted || request;
        ordinals := ordinals
          || CASE WHEN takes_slot OR request.counts = 'rpm' THEN counters.calls + minute END;
        times := times || counters.at;
      END IF;
      IF newest_at IS NULL AND counters.in_minute > 0 THEN
        SELECT x.admitted_at INTO newest_at FROM ledger_call x
          WHERE x.key_id = same_key.key_id AND x.ordinal IS NOT NULL
          ORDER BY x.admitted_at DESC LIMIT 1;
      END IF;
      verdicts := verdicts || ROW(request.place, refusal,
        greatest(request.rpm - counters.in_minute - minute, 0),
        CASE WHEN counters.in_minute + minute > 0
          THEN ledger_ms(newest_at + counters.minute - counters.at) ELSE 0 END,
        CASE refusal
          WHEN 'rpm' THEN
            ledger_ms(coalesce(counters.oldest_at, counters.at) + counters.minute - counters.at)
          WHEN 'rpd' THEN
            ledger_ms((counters.today + 1)::timestamp AT TIME ZONE 'UTC' - counters.at)
          WHEN 'concurrency' THEN 1000
          WHEN 'monthly_cap' THEN
            ledger_ms((counters.this_month + interval '1 month') AT TIME ZONE 'UTC' - counters.at)
          ELSE 0
        END, NULL)::ledger_verdict;
    END LOOP;

    -- clock_timestamp() measures a duration here; the time of day is always a parameter
    write_began := clock_timestamp();
    IF cardinality(admitted) > was_admitted THEN
      UPDATE ledger_key SET calls = counters.calls + minute, last_at = counters.at,
          day = counters.today, day_calls = counters.day_calls + slots,
          open_calls = counters.open_calls + slots, month = counters.this_month,
          spent_micros = counters.spent_micros, held_micros = counters.held_micros + holds,
          spared_at = CASE WHEN spares > 0 THEN counters.at ELSE spared_at END
        WHERE key_id = same_key.key_id;
    END IF;
    IF holds > 0 THEN
      UPDATE ledger_account SET held_micros = held_micros + holds
        WHERE account_id = same_key.account_id;
    END IF;
    write_time := write_time + (clock_timestamp() - write_began);
  END LOOP;
  write_began := clock_timestamp();
  INSERT INTO ledger_call (id, account_id, key_id, mode, counts, endpoint, request_id, parent_id,
      model, prices, expires_at, replica_id, hold_micros, state, ordinal, admitted_at, settled_at)
    SELECT id, account_id, key_id,
        -- null, which the columns refuse, for any other word
        CASE WHEN mode IN ('live', 'test') THEN mode END, counts, endpoint, request_id, parent_id,
        model, prices, expires_at, replica, hold_micros,
        CASE WHEN counts IN ('all', 'money', 'spare') THEN 'open' WHEN counts = 'rpm' THEN 'settled' END,
        ordinal, at, CASE counts WHEN 'rpm' THEN at END
      FROM unnest(admitted, ordinals, times) x (place, id, account_id, key_id, mode, counts,
        hold_micros, endpoint, request_id, parent_id, model, prices, expires_at, rpm, rpd, slots,
        cap_micros, ordinal, at);
  write_time := write_time + (clock_timestamp() - write_began);
  RETURN QUERY
    SELECT x.place, x.refusal, x.remaining, x.reset_ms, x.retry_after_ms,
        (extract(epoch FROM write_time) * 1000000)::bigint
      FROM unnest(verdicts) x;
END
$$;
