import { sql } from "kysely"
import { byIndex } from "./admit-sql.ts"

/** As an array, and not as JSON all through: it is parsed once, and a plan that was made while there were no calls expects few items and looks for each by its id. */
const settlement = sql`
CREATE TYPE ledger_settlement AS (id uuid, outcome text, cost_micros bigint, usage jsonb, input_tokens bigint, output_tokens bigint, http_status int)`

/** Takes one call out of the rolling minute: the later ones move up, so that ordinals stay without gaps. What left every window long ago only loses its mark. */
const uncount = sql`
CREATE FUNCTION ledger_uncount(given ledger_call, clock timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  UPDATE ledger_call SET ordinal = NULL WHERE id = given.id;
  IF given.admitted_at > clock - interval '2 minutes' THEN -- more than the window, as clocks of replicas differ
    UPDATE ledger_call SET ordinal = ordinal - 1 WHERE key_id = given.key_id AND admitted_at >= given.admitted_at AND ordinal > given.ordinal;
    UPDATE ledger_key SET calls = calls - 1 WHERE key_id = given.key_id;
  END IF;
END $$`

/** From the newest back, so that an ordinal is still true when its turn comes. */
const uncountAll = sql`
CREATE FUNCTION ledger_uncount_all(items ledger_settlement[], clock timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE given ledger_call;
BEGIN
  FOR given IN SELECT c.* FROM unnest(items) x JOIN ledger_call c USING (id)
      WHERE x.outcome = 'refused' AND c.state = 'open' AND c.ordinal IS NOT NULL ORDER BY c.key_id, c.ordinal DESC LOOP
    PERFORM ledger_uncount(given, clock);
  END LOOP;
END $$`

const monthOf = sql`
CREATE FUNCTION ledger_month(at timestamptz) RETURNS date LANGUAGE sql IMMUTABLE AS $$ SELECT date_trunc('month', at AT TIME ZONE 'UTC')::date $$`

const hourOf = sql`
CREATE FUNCTION ledger_hour(at timestamptz) RETURNS timestamptz LANGUAGE sql IMMUTABLE AS $$ SELECT date_bin('1 hour', at, '1970-01-01 00:00:00Z') $$`

/** 499: the client left, which is no error. */
const failed = sql`
CREATE FUNCTION ledger_failed(state text, http_status int) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT state IN ('voided', 'expired') OR coalesce(http_status >= 400 AND http_status <> 499, false) $$`

/**
 * Open calls end, whatever the reason: holds and slots go back, costs become transfers with the running balance. Each id at most once in `items`.
 * What is open has no `settled_at`: asked for by its state, the calls would be looked for among all open ones, by their index, and not by their ids.
 */
const close = sql`
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
END $$`

/** A call that expired ended after all: it pays what is free now, at most its hold. */
const closeLate = sql`
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
END $$`

/** The only door for calls that end. Answers how many were open. */
const settle = sql`
CREATE FUNCTION ledger_settle(items json, clock timestamptz) RETURNS bigint LANGUAGE plpgsql ${byIndex} AS $$
DECLARE ended ledger_settlement[]; closed bigint;
BEGIN
  SELECT array_agg(x) INTO ended FROM json_populate_recordset(NULL::ledger_settlement, items) x;
  PERFORM ledger_lock(array_agg(DISTINCT c.account_id)) FROM unnest(ended) x JOIN ledger_call c USING (id);
  -- what seldom is there is looked for first, as starting a join takes longer than settling a call
  IF EXISTS (SELECT FROM unnest(ended) x WHERE x.outcome = 'refused') THEN PERFORM ledger_uncount_all(ended, clock); END IF;
  closed := ledger_close(ended, clock);
  IF closed < cardinality(ended) THEN PERFORM ledger_close_late(ended, clock); END IF;
  RETURN closed;
END $$`

/** Answers done, repeated or too_low. */
const adjust = sql`
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
END $$`

export const settleFunctions = [
  settlement,
  monthOf,
  hourOf,
  failed,
  uncount,
  uncountAll,
  close,
  closeLate,
  settle,
  adjust,
]
