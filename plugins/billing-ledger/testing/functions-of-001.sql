-- The functions as 001-ledger made them before 003-functions replaced them: the text that is in old databases.

CREATE FUNCTION ledger_ms(span interval) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$ SELECT ceil(extract(epoch FROM span) * 1000)::bigint $$;

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
END $$;

CREATE FUNCTION ledger_admit(requests json, replica uuid, clock timestamptz)
RETURNS SETOF ledger_verdict LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
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
END $$;

CREATE FUNCTION ledger_month(at timestamptz) RETURNS date LANGUAGE sql IMMUTABLE AS $$ SELECT date_trunc('month', at AT TIME ZONE 'UTC')::date $$;

CREATE FUNCTION ledger_hour(at timestamptz) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$ SELECT date_bin('1 hour', at, '1970-01-01 00:00:00Z') $$;

CREATE FUNCTION ledger_failed(state text, http_status int) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT state IN ('voided', 'expired') OR coalesce(http_status >= 400 AND http_status <> 499, false) $$;

CREATE FUNCTION ledger_uncount(given ledger_call, clock timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE ledger_call SET ordinal = NULL WHERE id = given.id;
  IF given.admitted_at > clock - interval '2 minutes' THEN -- more than the window, as clocks of replicas differ
    UPDATE ledger_call SET ordinal = ordinal - 1 WHERE key_id = given.key_id AND admitted_at >= given.admitted_at AND ordinal > given.ordinal;
    UPDATE ledger_key SET calls = calls - 1 WHERE key_id = given.key_id;
  END IF;
END $$;

CREATE FUNCTION ledger_uncount_all(items ledger_settlement[], clock timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE given ledger_call;
BEGIN
  FOR given IN SELECT c.* FROM unnest(items) x JOIN ledger_call c USING (id)
      WHERE x.outcome = 'refused' AND c.state = 'open' AND c.ordinal IS NOT NULL ORDER BY c.key_id, c.ordinal DESC LOOP
    PERFORM ledger_uncount(given, clock);
  END LOOP;
END $$;

CREATE FUNCTION ledger_close(items ledger_settlement[], clock timestamptz) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE ended bigint;
BEGIN
  WITH closed AS (
    UPDATE ledger_call c SET state = x.outcome, usage = x.usage, http_status = x.http_status, settled_at = clock,
        cost_micros = CASE WHEN x.outcome = 'settled' THEN least(greatest(x.cost_micros, 0), c.hold_micros) ELSE 0 END,
        input_tokens = CASE WHEN x.outcome = 'settled' THEN coalesce(x.input_tokens, 0) ELSE 0 END,
        output_tokens = CASE WHEN x.outcome = 'settled' THEN coalesce(x.output_tokens, 0) ELSE 0 END
      FROM unnest(items) x WHERE c.id = x.id AND c.settled_at IS NULL RETURNING c.*
  ), balances AS (
    UPDATE ledger_account a SET held_micros = a.held_micros - s.held, balance_micros = a.balance_micros - s.cost,
        last_at = CASE WHEN s.cost > 0 THEN greatest(a.last_at, clock) ELSE a.last_at END
      FROM (SELECT account_id, sum(hold_micros)::bigint AS held, sum(cost_micros)::bigint AS cost FROM closed WHERE hold_micros > 0 GROUP BY account_id) s
      WHERE a.account_id = s.account_id RETURNING a.account_id, a.last_at, a.balance_micros + s.cost AS before_micros
  ), keys AS (
    UPDATE ledger_key k SET open_calls = k.open_calls - s.slots, day_calls = k.day_calls - s.refused, held_micros = k.held_micros - s.held, spent_micros = k.spent_micros + s.cost
      FROM (SELECT c.key_id, count(*) FILTER (WHERE c.counts = 'all')::int AS slots,
          count(*) FILTER (WHERE c.counts = 'all' AND c.state = 'refused' AND (c.admitted_at AT TIME ZONE 'UTC')::date = y.day)::int AS refused,
          coalesce(sum(c.hold_micros) FILTER (WHERE ledger_month(c.admitted_at) = y.month), 0)::bigint AS held,
          coalesce(sum(c.cost_micros) FILTER (WHERE ledger_month(c.admitted_at) = y.month), 0)::bigint AS cost
        FROM closed c JOIN ledger_key y USING (key_id) GROUP BY c.key_id) s
      WHERE k.key_id = s.key_id
  ), transfers AS (
    INSERT INTO ledger_transfer (account_id, debit_account, credit_account, amount_micros, balance_micros, type, call_id, at)
      SELECT account_id, account_id, '@revenue', c.cost_micros, b.before_micros - sum(c.cost_micros) OVER (PARTITION BY account_id ORDER BY c.id), 'charge', c.id,
          b.last_at
      FROM closed c JOIN balances b USING (account_id) WHERE c.cost_micros > 0 ORDER BY account_id, c.id
  ), hours AS (
    INSERT INTO ledger_usage AS u (account_id, mode, hour, key_id, model, endpoint, requests, errors, input_tokens, output_tokens, cost_micros)
      SELECT account_id, mode, ledger_hour(admitted_at), key_id, coalesce(model, ''), endpoint,
        count(*), count(*) FILTER (WHERE ledger_failed(state, http_status)), sum(input_tokens), sum(output_tokens), sum(cost_micros)
      FROM closed WHERE state <> 'refused' GROUP BY 1, 2, 3, 4, 5, 6
      ON CONFLICT (account_id, mode, hour, key_id, model, endpoint) DO UPDATE SET requests = u.requests + excluded.requests, errors = u.errors + excluded.errors,
        input_tokens = u.input_tokens + excluded.input_tokens, output_tokens = u.output_tokens + excluded.output_tokens, cost_micros = u.cost_micros + excluded.cost_micros
  )
  SELECT count(*) INTO ended FROM closed;
  RETURN ended;
END $$;

CREATE FUNCTION ledger_close_late(items ledger_settlement[], clock timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE r record; b ledger_account; charge bigint;
BEGIN
  FOR r IN SELECT c.id, c.account_id, c.mode, c.key_id, c.model, c.endpoint, c.admitted_at, c.hold_micros, x.cost_micros, x.usage, x.http_status,
        coalesce(x.input_tokens, 0) AS input_tokens, coalesce(x.output_tokens, 0) AS output_tokens
      FROM unnest(items) x JOIN ledger_call c ON c.id = x.id AND c.state = 'expired' WHERE x.outcome = 'settled' ORDER BY c.account_id, c.id LOOP
    SELECT * INTO b FROM ledger_account WHERE account_id = r.account_id;
    charge := least(greatest(r.cost_micros, 0), r.hold_micros, b.balance_micros - b.held_micros);
    UPDATE ledger_call SET state = 'settled', late = true, cost_micros = charge, usage = r.usage, input_tokens = r.input_tokens, output_tokens = r.output_tokens,
      http_status = r.http_status, settled_at = clock WHERE id = r.id;
    -- its hour counts it as an error since it expired
    UPDATE ledger_usage u SET errors = u.errors - 1 + ledger_failed('settled', r.http_status)::int, input_tokens = u.input_tokens + r.input_tokens,
      output_tokens = u.output_tokens + r.output_tokens, cost_micros = u.cost_micros + charge
      WHERE u.account_id = r.account_id AND u.mode = r.mode AND u.hour = ledger_hour(r.admitted_at) AND u.key_id = r.key_id
        AND u.model = coalesce(r.model, '') AND u.endpoint = r.endpoint;
    IF charge > 0 THEN
      UPDATE ledger_account SET balance_micros = balance_micros - charge, last_at = greatest(last_at, clock) WHERE account_id = r.account_id;
      UPDATE ledger_key SET spent_micros = spent_micros + charge WHERE key_id = r.key_id AND month = ledger_month(r.admitted_at);
      INSERT INTO ledger_transfer (account_id, debit_account, credit_account, amount_micros, balance_micros, type, call_id, at)
        VALUES (r.account_id, r.account_id, '@revenue', charge, b.balance_micros - charge, 'charge', r.id, greatest(b.last_at, clock));
    END IF;
  END LOOP;
END $$;

CREATE FUNCTION ledger_settle(items json, clock timestamptz) RETURNS bigint LANGUAGE plpgsql SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $$
DECLARE ended ledger_settlement[]; closed bigint;
BEGIN
  SELECT array_agg(x) INTO ended FROM json_populate_recordset(NULL::ledger_settlement, items) x;
  PERFORM ledger_lock(array_agg(DISTINCT c.account_id)) FROM unnest(ended) x JOIN ledger_call c USING (id);
  -- what seldom is there is looked for first, as starting a join takes longer than settling a call
  IF EXISTS (SELECT FROM unnest(ended) x WHERE x.outcome = 'refused') THEN PERFORM ledger_uncount_all(ended, clock); END IF;
  closed := ledger_close(ended, clock);
  IF closed < cardinality(ended) THEN PERFORM ledger_close_late(ended, clock); END IF;
  RETURN closed;
END $$;

CREATE FUNCTION ledger_adjust(entry text, account text, amount bigint, why text, clock timestamptz) RETURNS text LANGUAGE plpgsql AS $$
DECLARE b ledger_account;
BEGIN
  PERFORM ledger_lock(ARRAY[account]);
  IF EXISTS (SELECT 1 FROM ledger_transfer WHERE entry_id = entry) THEN RETURN 'repeated'; END IF;
  SELECT * INTO b FROM ledger_account WHERE account_id = account;
  IF amount < 0 AND b.balance_micros - b.held_micros + amount < 0 THEN RETURN 'too_low'; END IF;
  IF amount = 0 THEN RETURN 'done'; END IF;
  UPDATE ledger_account SET balance_micros = balance_micros + amount, last_at = greatest(last_at, clock) WHERE account_id = account;
  INSERT INTO ledger_transfer (account_id, debit_account, credit_account, amount_micros, balance_micros, type, entry_id, reason, at)
    VALUES (account, CASE WHEN amount > 0 THEN '@grants' ELSE account END, CASE WHEN amount > 0 THEN account ELSE '@grants' END, abs(amount),
      b.balance_micros + amount, CASE WHEN amount > 0 THEN 'grant' ELSE 'adjustment' END, entry, why, greatest(b.last_at, clock));
  RETURN 'done';
END $$;
