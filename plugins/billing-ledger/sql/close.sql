-- 499: the client closed the connection, which is no error.
CREATE OR REPLACE FUNCTION ledger_failed(state text, http_status int) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
  SELECT state IN ('voided', 'expired')
    OR coalesce(http_status >= 400 AND http_status <> 499, false)
$$;

-- Ends open calls, whatever the outcome: gives holds and slots back and turns costs into transfers with
-- the running balance. An id may occur once in `items`. Returns the number of calls that were open.
--
-- An item with a `spare_id` ends that spare call as its own. One that ends without is in no usage.
--
-- An open call has no `settled_at`. With a condition on `state`, the plan would scan the index of all
-- open calls instead of looking each call up by its id.
--
-- Most groups are calls of one key that went the same way: they are summed, and each table is written
-- by a plain statement. One statement for all tables spends more on starting its plans.
CREATE OR REPLACE FUNCTION ledger_close(items ledger_settlement[], clock timestamptz)
RETURNS bigint LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  alike record;
  account record;
  ended bigint := 0;
BEGIN
  FOR alike IN
    WITH closed AS (
      UPDATE ledger_call c SET usage = x.usage, http_status = x.http_status,
          id = x.id, counts = CASE WHEN x.spare_id IS NULL THEN c.counts ELSE 'all' END,
          hold_micros = coalesce(x.hold_micros, c.hold_micros),
          endpoint = coalesce(x.endpoint, c.endpoint),
          request_id = coalesce(x.request_id, c.request_id),
          model = CASE WHEN x.spare_id IS NULL THEN c.model ELSE x.model END,
          prices = CASE WHEN x.spare_id IS NULL THEN c.prices ELSE x.prices END,
          -- null, which the column refuses, for any other word
          state = CASE WHEN x.outcome IN ('settled', 'voided', 'refused', 'expired')
            THEN x.outcome END,
          evidence = x.evidence, stages = x.stages, total_ms = x.total_ms, first_ms = x.first_ms,
          error_code = CASE WHEN c.counts = 'spare' AND x.spare_id IS NULL THEN NULL
            WHEN x.outcome = 'expired' THEN 'expired'
            WHEN x.http_status = 499 THEN 'client_closed' ELSE x.error_code END,
          error_message = x.error_message,
          settled_at = clock,
          cost_micros = CASE WHEN x.outcome = 'settled'
            THEN least(greatest(x.cost_micros, 0), coalesce(x.hold_micros, c.hold_micros)) ELSE 0 END,
          input_tokens = CASE WHEN x.outcome = 'settled' THEN coalesce(x.input_tokens, 0) ELSE 0 END,
          output_tokens = CASE WHEN x.outcome = 'settled' THEN coalesce(x.output_tokens, 0) ELSE 0 END
        FROM unnest(items) x WHERE c.id = coalesce(x.spare_id, x.id) AND c.settled_at IS NULL
        RETURNING c.id, c.account_id, c.key_id, c.mode, c.counts, c.state, c.admitted_at, c.model,
          c.endpoint, coalesce(x.spare_micros, c.hold_micros) AS held_micros, c.cost_micros,
          c.input_tokens, c.output_tokens, c.http_status, c.total_ms, c.first_ms
    )
    SELECT account_id, key_id, mode, ledger_hour(admitted_at) AS hour, model, endpoint,
        state, counts, http_status, count(*) AS calls,
        count(*) FILTER (WHERE ledger_failed(state, http_status)) AS errors,
        sum(held_micros)::bigint AS hold, sum(cost_micros)::bigint AS cost,
        sum(input_tokens)::bigint AS input_tokens,
        sum(output_tokens)::bigint AS output_tokens, array_agg(id) AS ids,
        array_agg(cost_micros) AS costs, array_agg(total_ms) AS totals,
        array_agg(first_ms) AS firsts
      FROM closed GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9
  LOOP
    ended := ended + alike.calls;
    UPDATE ledger_key SET
        open_calls = open_calls
          - CASE WHEN alike.counts IN ('all', 'spare') THEN alike.calls ELSE 0 END,
        day_calls = day_calls
          - CASE WHEN alike.counts IN ('all', 'spare') AND alike.state = 'refused'
          AND day = (alike.hour AT TIME ZONE 'UTC')::date THEN alike.calls ELSE 0 END,
        held_micros = held_micros - CASE month WHEN ledger_month(alike.hour)
          THEN alike.hold ELSE 0 END,
        spent_micros = spent_micros + CASE month WHEN ledger_month(alike.hour)
          THEN alike.cost ELSE 0 END
      WHERE key_id = alike.key_id;
    IF alike.hold > 0 THEN
      UPDATE ledger_account SET held_micros = held_micros - alike.hold,
          balance_micros = balance_micros - alike.cost,
          last_at = CASE WHEN alike.cost > 0 THEN greatest(last_at, clock) ELSE last_at END
        WHERE account_id = alike.account_id
        RETURNING balance_micros + alike.cost AS before_micros, last_at INTO account;
    END IF;
    IF alike.cost > 0 THEN
      INSERT INTO ledger_transfer (account_id, debit_account, credit_account, amount_micros,
          balance_micros, type, call_id, at)
        SELECT alike.account_id, alike.account_id, '@revenue', cost,
            account.before_micros - sum(cost) OVER (ROWS UNBOUNDED PRECEDING), 'charge', id,
            account.last_at
          FROM unnest(alike.ids, alike.costs) x (id, cost) WHERE cost > 0;
    END IF;
    CONTINUE WHEN alike.state = 'refused' OR alike.counts = 'spare';
    UPDATE ledger_usage SET requests = requests + alike.calls,
        errors = errors + alike.errors,
        input_tokens = input_tokens + alike.input_tokens,
        output_tokens = output_tokens + alike.output_tokens,
        cost_micros = cost_micros + alike.cost
      WHERE account_id = alike.account_id AND mode = alike.mode AND hour = alike.hour
        AND key_id = alike.key_id AND model = coalesce(alike.model, '')
        AND endpoint = alike.endpoint;
    IF NOT FOUND THEN
      INSERT INTO ledger_usage (account_id, mode, hour, key_id, model, endpoint, requests, errors,
          input_tokens, output_tokens, cost_micros)
        VALUES (alike.account_id, alike.mode, alike.hour, alike.key_id, coalesce(alike.model, ''),
          alike.endpoint, alike.calls, alike.errors, alike.input_tokens, alike.output_tokens,
          alike.cost);
    END IF;
    IF alike.state = 'settled' AND alike.http_status < 400 AND alike.counts = 'all'
        AND alike.model IS NOT NULL THEN
      INSERT INTO ledger_latency AS l (account_id, mode, day, model, bucket, totals, firsts)
        SELECT alike.account_id, alike.mode, (alike.hour AT TIME ZONE 'UTC')::date, alike.model,
            ledger_bucket(ms), sum(total), sum(first)
          FROM (SELECT ms, 1, 0 FROM unnest(alike.totals) ms
            UNION ALL SELECT ms, 0, 1 FROM unnest(alike.firsts) ms) v (ms, total, first)
          WHERE ms IS NOT NULL GROUP BY 5
        ON CONFLICT (account_id, mode, day, model, bucket) DO UPDATE
          SET totals = l.totals + excluded.totals, firsts = l.firsts + excluded.firsts;
    END IF;
  END LOOP;
  RETURN ended;
END
$$;
