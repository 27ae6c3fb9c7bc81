-- 499: the client closed the connection, which is no error.
CREATE OR REPLACE FUNCTION ledger_failed(state text, http_status int) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
  SELECT state IN ('voided', 'expired')
    OR coalesce(http_status >= 400 AND http_status <> 499, false)
$$;

-- Ends open calls, whatever the outcome: gives holds and slots back and turns costs into transfers with
-- the running balance. An id may occur once in `items`. Returns the number of calls that were open.
--
-- An open call has no `settled_at`. With a condition on `state`, the plan would scan the index of all
-- open calls instead of looking each call up by its id.
CREATE OR REPLACE FUNCTION ledger_close(items ledger_settlement[], clock timestamptz)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  ended bigint;
BEGIN
  WITH closed AS (
    UPDATE ledger_call c SET state = x.outcome, usage = x.usage, http_status = x.http_status,
        evidence = x.evidence, stages = x.stages, total_ms = x.total_ms, first_ms = x.first_ms,
        error_code = CASE WHEN x.outcome = 'expired' THEN 'expired'
          WHEN x.http_status = 499 THEN 'client_closed' ELSE x.error_code END,
        error_message = x.error_message,
        settled_at = clock,
        cost_micros = CASE WHEN x.outcome = 'settled'
          THEN least(greatest(x.cost_micros, 0), c.hold_micros) ELSE 0 END,
        input_tokens = CASE WHEN x.outcome = 'settled' THEN coalesce(x.input_tokens, 0) ELSE 0 END,
        output_tokens = CASE WHEN x.outcome = 'settled' THEN coalesce(x.output_tokens, 0) ELSE 0 END
      FROM unnest(items) x WHERE c.id = x.id AND c.settled_at IS NULL RETURNING c.*
  ), balances AS (
    UPDATE ledger_account a SET held_micros = a.held_micros - s.held,
        balance_micros = a.balance_micros - s.cost,
        last_at = CASE WHEN s.cost > 0 THEN greatest(a.last_at, clock) ELSE a.last_at END
      FROM (
        SELECT account_id, sum(hold_micros)::bigint AS held, sum(cost_micros)::bigint AS cost
          FROM closed WHERE hold_micros > 0 GROUP BY account_id
      ) s
      WHERE a.account_id = s.account_id
      RETURNING a.account_id, a.last_at, a.balance_micros + s.cost AS before_micros
  ), keys AS (
    UPDATE ledger_key k SET open_calls = k.open_calls - s.slots, day_calls = k.day_calls - s.refused,
        held_micros = k.held_micros - s.held, spent_micros = k.spent_micros + s.cost
      FROM (
        SELECT c.key_id, count(*) FILTER (WHERE c.counts = 'all')::int AS slots,
            count(*) FILTER (
              WHERE c.counts = 'all' AND c.state = 'refused'
                AND (c.admitted_at AT TIME ZONE 'UTC')::date = y.day
            )::int AS refused,
            coalesce(sum(c.hold_micros)
              FILTER (WHERE ledger_month(c.admitted_at) = y.month), 0)::bigint AS held,
            coalesce(sum(c.cost_micros)
              FILTER (WHERE ledger_month(c.admitted_at) = y.month), 0)::bigint AS cost
          FROM closed c JOIN ledger_key y USING (key_id) GROUP BY c.key_id
      ) s
      WHERE k.key_id = s.key_id
  ), transfers AS (
    INSERT INTO ledger_transfer (account_id, debit_account, credit_account, amount_micros,
        balance_micros, type, call_id, at)
      SELECT account_id, account_id, '@revenue', c.cost_micros,
          b.before_micros - sum(c.cost_micros) OVER (PARTITION BY account_id ORDER BY c.id),
          'charge', c.id, b.last_at
        FROM closed c JOIN balances b USING (account_id) WHERE c.cost_micros > 0
        ORDER BY account_id, c.id
  ), hours AS (
    INSERT INTO ledger_usage AS u (account_id, mode, hour, key_id, model, endpoint, requests, errors,
        input_tokens, output_tokens, cost_micros)
      SELECT account_id, mode, ledger_hour(admitted_at), key_id, coalesce(model, ''), endpoint,
          count(*), count(*) FILTER (WHERE ledger_failed(state, http_status)), sum(input_tokens),
          sum(output_tokens), sum(cost_micros)
        FROM closed WHERE state <> 'refused' GROUP BY 1, 2, 3, 4, 5, 6
      ON CONFLICT (account_id, mode, hour, key_id, model, endpoint) DO UPDATE
        SET requests = u.requests + excluded.requests, errors = u.errors + excluded.errors,
          input_tokens = u.input_tokens + excluded.input_tokens,
          output_tokens = u.output_tokens + excluded.output_tokens,
          cost_micros = u.cost_micros + excluded.cost_micros
  ), latencies AS (
    INSERT INTO ledger_latency AS l (account_id, mode, day, model, bucket, totals, firsts)
      SELECT account_id, mode, (admitted_at AT TIME ZONE 'UTC')::date, model, ledger_bucket(v.ms),
          sum(v.total), sum(v.first)
        FROM closed CROSS JOIN LATERAL (VALUES (total_ms, 1, 0), (first_ms, 0, 1)) v (ms, total, first)
        WHERE v.ms IS NOT NULL AND state = 'settled' AND http_status < 400 AND counts = 'all'
          AND model IS NOT NULL
        GROUP BY 1, 2, 3, 4, 5
      ON CONFLICT (account_id, mode, day, model, bucket) DO UPDATE
        SET totals = l.totals + excluded.totals, firsts = l.firsts + excluded.firsts
  )
  SELECT count(*) INTO ended FROM closed;
  RETURN ended;
END
$$;
