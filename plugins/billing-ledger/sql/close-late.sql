-- Settles calls that had expired: each pays what its account has free now, at most its hold.
CREATE OR REPLACE FUNCTION ledger_close_late(items ledger_settlement[], clock timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  late_call record;
  balance ledger_account;
  charge bigint;
BEGIN
  FOR late_call IN
    SELECT c.id, c.account_id, c.mode, c.key_id, c.model, c.endpoint, c.admitted_at, c.hold_micros,
        x.cost_micros, x.usage, x.http_status, x.stages, x.total_ms, x.first_ms, coalesce(x.input_tokens, 0) AS input_tokens,
        coalesce(x.output_tokens, 0) AS output_tokens
      FROM unnest(items) x JOIN ledger_call c ON c.id = x.id AND c.state = 'expired'
      WHERE x.outcome = 'settled' ORDER BY c.account_id, c.id
  LOOP
    SELECT * INTO balance FROM ledger_account WHERE account_id = late_call.account_id;
    charge := least(greatest(late_call.cost_micros, 0), late_call.hold_micros,
      balance.balance_micros - balance.held_micros);
    UPDATE ledger_call SET state = 'settled', late = true, cost_micros = charge,
        usage = late_call.usage, input_tokens = late_call.input_tokens,
        output_tokens = late_call.output_tokens, http_status = late_call.http_status,
        stages = late_call.stages, total_ms = late_call.total_ms, first_ms = late_call.first_ms,
        error_code = CASE WHEN late_call.http_status = 499 THEN 'client_closed' END,
        settled_at = clock
      WHERE id = late_call.id;
    -- its hour has counted it as an error since it expired
    UPDATE ledger_usage u
      SET errors = u.errors - 1 + ledger_failed('settled', late_call.http_status)::int,
        input_tokens = u.input_tokens + late_call.input_tokens,
        output_tokens = u.output_tokens + late_call.output_tokens,
        cost_micros = u.cost_micros + charge
      WHERE u.account_id = late_call.account_id AND u.mode = late_call.mode
        AND u.hour = ledger_hour(late_call.admitted_at) AND u.key_id = late_call.key_id
        AND u.model = coalesce(late_call.model, '') AND u.endpoint = late_call.endpoint;
    IF charge > 0 THEN
      UPDATE ledger_account
        SET balance_micros = balance_micros - charge, last_at = greatest(last_at, clock)
        WHERE account_id = late_call.account_id;
      UPDATE ledger_key SET spent_micros = spent_micros + charge
        WHERE key_id = late_call.key_id AND month = ledger_month(late_call.admitted_at);
      INSERT INTO ledger_transfer (account_id, debit_account, credit_account, amount_micros,
          balance_micros, type, call_id, at)
        VALUES (late_call.account_id, late_call.account_id, '@revenue', charge,
          balance.balance_micros - charge, 'charge', late_call.id, greatest(balance.last_at, clock));
    END IF;
  END LOOP;
END
$$;
