SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE TYPE public.ledger_request AS (
	place integer,
	id uuid,
	account_id text,
	key_id text,
	mode text,
	counts text,
	hold_micros bigint,
	endpoint text,
	request_id text,
	parent_id text,
	model text,
	prices json,
	expires_at timestamp with time zone,
	rpm bigint,
	rpd bigint,
	slots bigint,
	cap_micros bigint
);
CREATE TYPE public.ledger_settlement AS (
	id uuid,
	outcome text,
	cost_micros bigint,
	usage jsonb,
	input_tokens bigint,
	output_tokens bigint,
	http_status integer,
	evidence jsonb
);
CREATE TYPE public.ledger_verdict AS (
	place integer,
	refusal text,
	remaining bigint,
	reset_ms bigint,
	retry_after_ms bigint,
	hold_us bigint
);
CREATE FUNCTION public.accounts_audit_append_only() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
      BEGIN
        RAISE EXCEPTION 'accounts_audit is append-only';
      END $$;
CREATE FUNCTION public.ledger_adjust(entry text, account text, amount bigint, why text, clock timestamp with time zone) RETURNS text
    LANGUAGE plpgsql
    AS $$
DECLARE
  balance ledger_account;
BEGIN
  PERFORM ledger_lock(ARRAY[account]);
  IF EXISTS (SELECT 1 FROM ledger_transfer WHERE entry_id = entry) THEN RETURN 'repeated'; END IF;
  SELECT * INTO balance FROM ledger_account WHERE account_id = account;
  IF amount < 0 AND balance.balance_micros - balance.held_micros + amount < 0 THEN
    RETURN 'too_low';
  END IF;
  IF amount = 0 THEN RETURN 'done'; END IF;
  UPDATE ledger_account
    SET balance_micros = balance_micros + amount, last_at = greatest(last_at, clock)
    WHERE account_id = account;
  INSERT INTO ledger_transfer (account_id, debit_account, credit_account, amount_micros,
      balance_micros, type, entry_id, reason, at)
    VALUES (account, CASE WHEN amount > 0 THEN '@grants' ELSE account END,
      CASE WHEN amount > 0 THEN account ELSE '@grants' END, abs(amount),
      balance.balance_micros + amount, CASE WHEN amount > 0 THEN 'grant' ELSE 'adjustment' END,
      entry, why, greatest(balance.last_at, clock));
  RETURN 'done';
END
$$;
CREATE FUNCTION public.ledger_admit(requests json, replica uuid, clock timestamp with time zone) RETURNS SETOF public.ledger_verdict
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
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
CREATE FUNCTION public.ledger_append_only() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
  RAISE EXCEPTION 'ledger_transfer is append-only';
END
$$;
CREATE FUNCTION public.ledger_close(items public.ledger_settlement[], clock timestamp with time zone) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
DECLARE
  ended bigint;
BEGIN
  WITH closed AS (
    UPDATE ledger_call c SET state = x.outcome, usage = x.usage, http_status = x.http_status,
        evidence = x.evidence,
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
  )
  SELECT count(*) INTO ended FROM closed;
  RETURN ended;
END
$$;
CREATE FUNCTION public.ledger_close_late(items public.ledger_settlement[], clock timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
  late_call record;
  balance ledger_account;
  charge bigint;
BEGIN
  FOR late_call IN
    SELECT c.id, c.account_id, c.mode, c.key_id, c.model, c.endpoint, c.admitted_at, c.hold_micros,
        x.cost_micros, x.usage, x.http_status, coalesce(x.input_tokens, 0) AS input_tokens,
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
CREATE FUNCTION public.ledger_failed(state text, http_status integer) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    AS $$
  SELECT state IN ('voided', 'expired')
    OR coalesce(http_status >= 400 AND http_status <> 499, false)
$$;
CREATE FUNCTION public.ledger_hour(at timestamp with time zone) RETURNS timestamp with time zone
    LANGUAGE sql IMMUTABLE
    AS $$
  SELECT date_bin('1 hour', at, '1970-01-01 00:00:00Z')
$$;
CREATE FUNCTION public.ledger_lock(accounts text[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
  account text;
BEGIN
  FOR account IN SELECT DISTINCT x FROM unnest(accounts) x ORDER BY x LOOP
    LOOP
      PERFORM 1 FROM ledger_account WHERE account_id = account FOR UPDATE;
      EXIT WHEN FOUND;
      INSERT INTO ledger_account (account_id) VALUES (account) ON CONFLICT DO NOTHING;
    END LOOP;
  END LOOP;
END
$$;
CREATE FUNCTION public.ledger_month(at timestamp with time zone) RETURNS date
    LANGUAGE sql IMMUTABLE
    AS $$
  SELECT date_trunc('month', at AT TIME ZONE 'UTC')::date
$$;
CREATE FUNCTION public.ledger_ms(span interval) RETURNS bigint
    LANGUAGE sql IMMUTABLE
    AS $$
  SELECT ceil(extract(epoch FROM span) * 1000)::bigint
$$;
CREATE FUNCTION public.ledger_settle(items json, clock timestamp with time zone) RETURNS bigint
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET jit TO 'off'
    AS $$
DECLARE
  ended ledger_settlement[];
  closed bigint;
BEGIN
  SELECT array_agg(x) INTO ended FROM json_populate_recordset(NULL::ledger_settlement, items) x;
  PERFORM ledger_lock(array_agg(DISTINCT c.account_id))
    FROM unnest(ended) x JOIN ledger_call c USING (id);
  -- rare cases are checked for first: starting their joins takes longer than settling a call
  IF EXISTS (SELECT FROM unnest(ended) x WHERE x.outcome = 'refused') THEN
    PERFORM ledger_uncount_all(ended, clock);
  END IF;
  closed := ledger_close(ended, clock);
  IF closed < cardinality(ended) THEN PERFORM ledger_close_late(ended, clock); END IF;
  RETURN closed;
END
$$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.ledger_call (
    id uuid NOT NULL,
    account_id text NOT NULL,
    key_id text NOT NULL,
    mode text NOT NULL,
    counts text NOT NULL,
    state text NOT NULL,
    ordinal bigint,
    admitted_at timestamp with time zone NOT NULL,
    settled_at timestamp with time zone,
    replica_id uuid NOT NULL,
    parent_id text,
    endpoint text NOT NULL,
    request_id text NOT NULL,
    model text,
    prices json,
    expires_at timestamp with time zone,
    hold_micros bigint NOT NULL,
    cost_micros bigint DEFAULT 0 NOT NULL,
    usage jsonb,
    input_tokens bigint DEFAULT 0 NOT NULL,
    output_tokens bigint DEFAULT 0 NOT NULL,
    http_status integer,
    late boolean DEFAULT false NOT NULL,
    evidence jsonb,
    CONSTRAINT ledger_call_check CHECK (((cost_micros >= 0) AND (cost_micros <= hold_micros))),
    CONSTRAINT ledger_call_check1 CHECK (((state <> 'open'::text) OR (cost_micros = 0))),
    CONSTRAINT ledger_call_counts_check CHECK ((counts = ANY (ARRAY['all'::text, 'rpm'::text, 'money'::text]))),
    CONSTRAINT ledger_call_hold_micros_check CHECK ((hold_micros >= 0)),
    CONSTRAINT ledger_call_mode_check CHECK ((mode = ANY (ARRAY['live'::text, 'test'::text]))),
    CONSTRAINT ledger_call_state_check CHECK ((state = ANY (ARRAY['open'::text, 'settled'::text, 'voided'::text, 'refused'::text, 'expired'::text])))
);
CREATE FUNCTION public.ledger_uncount(given public.ledger_call, clock timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
  UPDATE ledger_call SET ordinal = NULL WHERE id = given.id;
  -- more than the window of 60 s, as the clocks of replicas differ
  IF given.admitted_at > clock - interval '2 minutes' THEN
    UPDATE ledger_call SET ordinal = ordinal - 1
      WHERE key_id = given.key_id AND admitted_at >= given.admitted_at AND ordinal > given.ordinal;
    UPDATE ledger_key SET calls = calls - 1 WHERE key_id = given.key_id;
  END IF;
END
$$;
CREATE FUNCTION public.ledger_uncount_all(items public.ledger_settlement[], clock timestamp with time zone) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
  given ledger_call;
BEGIN
  FOR given IN
    SELECT c.* FROM unnest(items) x JOIN ledger_call c USING (id)
      WHERE x.outcome = 'refused' AND c.state = 'open' AND c.ordinal IS NOT NULL
      ORDER BY c.key_id, c.ordinal DESC
  LOOP
    PERFORM ledger_uncount(given, clock);
  END LOOP;
END
$$;
CREATE TABLE public.accounts_account (
    id text NOT NULL,
    email text NOT NULL,
    password_hash text NOT NULL,
    role text NOT NULL,
    is_first boolean DEFAULT false NOT NULL,
    verified_at timestamp with time zone,
    suspended_at timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    locale text DEFAULT 'en'::text NOT NULL,
    session_epoch integer DEFAULT 1 NOT NULL,
    CONSTRAINT accounts_account_email_check CHECK ((email = lower(email))),
    CONSTRAINT accounts_account_locale_check CHECK ((locale = ANY (ARRAY['en'::text, 'id'::text]))),
    CONSTRAINT accounts_account_role_check CHECK ((role = ANY (ARRAY['user'::text, 'admin'::text])))
);
CREATE TABLE public.accounts_attempt (
    bucket bytea NOT NULL,
    at_ms bigint[] NOT NULL,
    taken boolean NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT accounts_attempt_bucket_check CHECK ((length(bucket) = 32))
);
CREATE TABLE public.accounts_audit (
    id text NOT NULL,
    seq bigint NOT NULL,
    actor text NOT NULL,
    action text NOT NULL,
    target text NOT NULL,
    before json,
    after json,
    created_at timestamp with time zone NOT NULL
);
ALTER TABLE public.accounts_audit ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.accounts_audit_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.accounts_key (
    id text NOT NULL,
    account_id text NOT NULL,
    name text NOT NULL,
    sha256 bytea NOT NULL,
    prefix text NOT NULL,
    mode text NOT NULL,
    scopes text[] NOT NULL,
    rpm integer NOT NULL,
    rpd integer NOT NULL,
    concurrency integer NOT NULL,
    monthly_cap_micros bigint NOT NULL,
    created_at timestamp with time zone NOT NULL,
    last_used_at timestamp with time zone,
    revoked_at timestamp with time zone,
    seq bigint NOT NULL,
    expires_at timestamp with time zone,
    playground boolean DEFAULT false NOT NULL,
    body_mb integer DEFAULT 50 NOT NULL,
    CONSTRAINT accounts_key_body_mb_check CHECK ((body_mb >= 1)),
    CONSTRAINT accounts_key_concurrency_check CHECK ((concurrency >= 0)),
    CONSTRAINT accounts_key_mode_check CHECK ((mode = ANY (ARRAY['live'::text, 'test'::text]))),
    CONSTRAINT accounts_key_monthly_cap_micros_check CHECK ((monthly_cap_micros >= 0)),
    CONSTRAINT accounts_key_rpd_check CHECK ((rpd >= 0)),
    CONSTRAINT accounts_key_rpm_check CHECK ((rpm >= 0)),
    CONSTRAINT accounts_key_sha256_check CHECK ((length(sha256) = 32))
);
ALTER TABLE public.accounts_key ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.accounts_key_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.accounts_migration (
    name character varying(255) NOT NULL,
    "timestamp" character varying(255) NOT NULL
);
CREATE TABLE public.accounts_migration_lock (
    id character varying(255) NOT NULL,
    is_locked integer DEFAULT 0 NOT NULL
);
CREATE TABLE public.accounts_token (
    sha256 bytea NOT NULL,
    account_id text NOT NULL,
    purpose text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    used_at timestamp with time zone,
    voided_at timestamp with time zone,
    CONSTRAINT accounts_token_purpose_check CHECK ((purpose = ANY (ARRAY['verify'::text, 'reset'::text]))),
    CONSTRAINT accounts_token_sha256_check CHECK ((length(sha256) = 32))
);
CREATE TABLE public.batches_batch (
    id text NOT NULL,
    seq bigint NOT NULL,
    account text NOT NULL,
    mode text NOT NULL,
    key_id text NOT NULL,
    endpoint text NOT NULL,
    status text NOT NULL,
    input_file_id text NOT NULL,
    output_file_id text,
    error_file_id text,
    metadata jsonb,
    errors jsonb,
    total integer DEFAULT 0 NOT NULL,
    completed integer DEFAULT 0 NOT NULL,
    failed integer DEFAULT 0 NOT NULL,
    cost_micros bigint DEFAULT 0 NOT NULL,
    epoch integer DEFAULT 0 NOT NULL,
    lease_until timestamp with time zone,
    done_through integer DEFAULT 0 NOT NULL,
    done_offset bigint DEFAULT 0 NOT NULL,
    created_at timestamp with time zone NOT NULL,
    in_progress_at timestamp with time zone,
    ended_at timestamp with time zone,
    deadline_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT batches_batch_check CHECK (((completed >= 0) AND (failed >= 0) AND ((completed + failed) <= total))),
    CONSTRAINT batches_batch_check1 CHECK (((ended_at IS NOT NULL) = (status <> ALL (ARRAY['validating'::text, 'in_progress'::text])))),
    CONSTRAINT batches_batch_cost_micros_check CHECK ((cost_micros >= 0)),
    CONSTRAINT batches_batch_mode_check CHECK ((mode = ANY (ARRAY['live'::text, 'test'::text]))),
    CONSTRAINT batches_batch_status_check CHECK ((status = ANY (ARRAY['validating'::text, 'in_progress'::text, 'completed'::text, 'failed'::text, 'cancelled'::text, 'expired'::text])))
);
CREATE SEQUENCE public.batches_batch_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.batches_batch_seq_seq OWNED BY public.batches_batch.seq;
CREATE TABLE public.batches_line (
    batch_id text NOT NULL,
    line integer NOT NULL,
    ok boolean NOT NULL,
    body text NOT NULL
);
ALTER TABLE ONLY public.batches_line ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE TABLE public.batches_part (
    batch_id text NOT NULL,
    kind text NOT NULL,
    part integer NOT NULL,
    blob_key text NOT NULL,
    bytes bigint NOT NULL,
    CONSTRAINT batches_part_kind_check CHECK ((kind = ANY (ARRAY['output'::text, 'error'::text])))
);
CREATE TABLE public.billing_ledger_migration (
    name character varying(255) NOT NULL,
    "timestamp" character varying(255) NOT NULL
);
CREATE TABLE public.billing_ledger_migration_lock (
    id character varying(255) NOT NULL,
    is_locked integer DEFAULT 0 NOT NULL
);
CREATE TABLE public.endpoint_batches_migration (
    name character varying(255) NOT NULL,
    "timestamp" character varying(255) NOT NULL
);
CREATE TABLE public.endpoint_batches_migration_lock (
    id character varying(255) NOT NULL,
    is_locked integer DEFAULT 0 NOT NULL
);
CREATE TABLE public.endpoint_files_migration (
    name character varying(255) NOT NULL,
    "timestamp" character varying(255) NOT NULL
);
CREATE TABLE public.endpoint_files_migration_lock (
    id character varying(255) NOT NULL,
    is_locked integer DEFAULT 0 NOT NULL
);
CREATE TABLE public.endpoint_retrieval_migration (
    name character varying(255) NOT NULL,
    "timestamp" character varying(255) NOT NULL
);
CREATE TABLE public.endpoint_retrieval_migration_lock (
    id character varying(255) NOT NULL,
    is_locked integer DEFAULT 0 NOT NULL
);
CREATE TABLE public.files_file (
    id text NOT NULL,
    seq bigint NOT NULL,
    account text NOT NULL,
    mode text NOT NULL,
    filename text NOT NULL,
    purpose text NOT NULL,
    status text NOT NULL,
    status_details text,
    bytes bigint NOT NULL,
    counted boolean NOT NULL,
    blob_key text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    deleted_at timestamp with time zone,
    progress jsonb,
    key_id text,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    observed boolean DEFAULT false NOT NULL,
    CONSTRAINT files_file_bytes_check CHECK ((bytes >= 0)),
    CONSTRAINT files_file_check CHECK (((status = 'deleted'::text) = (deleted_at IS NOT NULL))),
    CONSTRAINT files_file_mode_check CHECK ((mode = ANY (ARRAY['live'::text, 'test'::text]))),
    CONSTRAINT files_file_purpose_check CHECK ((purpose = ANY (ARRAY['batch_input'::text, 'knowledge'::text, 'batch_output'::text, 'batch_error'::text]))),
    CONSTRAINT files_file_status_check CHECK ((status = ANY (ARRAY['uploaded'::text, 'processing'::text, 'processed'::text, 'failed'::text, 'deleted'::text])))
);
CREATE SEQUENCE public.files_file_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.files_file_seq_seq OWNED BY public.files_file.seq;
CREATE TABLE public.files_incoming (
    id text NOT NULL,
    account text NOT NULL,
    mode text NOT NULL,
    blob_key text NOT NULL,
    held_bytes bigint NOT NULL,
    lease_until timestamp with time zone NOT NULL,
    CONSTRAINT files_incoming_held_bytes_check CHECK ((held_bytes >= 0)),
    CONSTRAINT files_incoming_mode_check CHECK ((mode = ANY (ARRAY['live'::text, 'test'::text])))
);
CREATE TABLE public.files_part (
    id text NOT NULL,
    upload_id text NOT NULL,
    bytes bigint NOT NULL,
    blob_key text NOT NULL,
    created_at timestamp with time zone NOT NULL
);
CREATE TABLE public.files_trash (
    blob_key text NOT NULL,
    due_at timestamp with time zone NOT NULL
);
CREATE TABLE public.files_upload (
    id text NOT NULL,
    account text NOT NULL,
    mode text NOT NULL,
    filename text NOT NULL,
    purpose text NOT NULL,
    bytes bigint NOT NULL,
    keep_ms bigint NOT NULL,
    status text NOT NULL,
    completing text,
    file_id text,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    file_status text DEFAULT 'uploaded'::text NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT files_upload_bytes_check CHECK ((bytes > 0)),
    CONSTRAINT files_upload_check CHECK (((status = 'completed'::text) = (file_id IS NOT NULL))),
    CONSTRAINT files_upload_mode_check CHECK ((mode = ANY (ARRAY['live'::text, 'test'::text]))),
    CONSTRAINT files_upload_purpose_check CHECK ((purpose = ANY (ARRAY['batch_input'::text, 'knowledge'::text]))),
    CONSTRAINT files_upload_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'completed'::text, 'cancelled'::text, 'expired'::text])))
);
CREATE TABLE public.files_usage (
    account text NOT NULL,
    mode text NOT NULL,
    bytes bigint NOT NULL,
    files bigint NOT NULL,
    CONSTRAINT files_usage_bytes_check CHECK ((bytes >= 0)),
    CONSTRAINT files_usage_files_check CHECK ((files >= 0)),
    CONSTRAINT files_usage_mode_check CHECK ((mode = ANY (ARRAY['live'::text, 'test'::text])))
);
CREATE TABLE public.idempotency_key (
    account text NOT NULL,
    mode text NOT NULL,
    key text NOT NULL,
    fingerprint text NOT NULL,
    attempt uuid NOT NULL,
    state text NOT NULL,
    lease_until timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    status integer,
    reply text,
    sealed_by text,
    call_id text,
    CONSTRAINT idempotency_key_check CHECK (((state = 'done'::text) = ((status IS NOT NULL) AND (reply IS NOT NULL)))),
    CONSTRAINT idempotency_key_mode_check CHECK ((mode = ANY (ARRAY['live'::text, 'test'::text]))),
    CONSTRAINT idempotency_key_state_check CHECK ((state = ANY (ARRAY['running'::text, 'done'::text])))
);
CREATE TABLE public.idempotency_postgres_migration (
    name character varying(255) NOT NULL,
    "timestamp" character varying(255) NOT NULL
);
CREATE TABLE public.idempotency_postgres_migration_lock (
    id character varying(255) NOT NULL,
    is_locked integer DEFAULT 0 NOT NULL
);
CREATE TABLE public.ledger_account (
    account_id text NOT NULL,
    balance_micros bigint DEFAULT 0 NOT NULL,
    held_micros bigint DEFAULT 0 NOT NULL,
    last_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    CONSTRAINT ledger_account_check CHECK ((held_micros <= balance_micros)),
    CONSTRAINT ledger_account_held_micros_check CHECK ((held_micros >= 0))
)
WITH (fillfactor='50');
CREATE TABLE public.ledger_key (
    key_id text NOT NULL,
    calls bigint DEFAULT 0 NOT NULL,
    last_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    day date DEFAULT '-infinity'::date NOT NULL,
    day_calls integer DEFAULT 0 NOT NULL,
    open_calls integer DEFAULT 0 NOT NULL,
    month date DEFAULT '-infinity'::date NOT NULL,
    spent_micros bigint DEFAULT 0 NOT NULL,
    held_micros bigint DEFAULT 0 NOT NULL,
    CONSTRAINT ledger_key_calls_check CHECK ((calls >= 0)),
    CONSTRAINT ledger_key_day_calls_check CHECK ((day_calls >= 0)),
    CONSTRAINT ledger_key_held_micros_check CHECK ((held_micros >= 0)),
    CONSTRAINT ledger_key_open_calls_check CHECK ((open_calls >= 0)),
    CONSTRAINT ledger_key_spent_micros_check CHECK ((spent_micros >= 0))
)
WITH (fillfactor='50');
CREATE TABLE public.ledger_refusal (
    account_id text NOT NULL,
    mode text NOT NULL,
    hour timestamp with time zone NOT NULL,
    key_id text NOT NULL,
    model text NOT NULL,
    endpoint text NOT NULL,
    requests bigint NOT NULL,
    CONSTRAINT ledger_refusal_mode_check CHECK ((mode = ANY (ARRAY['live'::text, 'test'::text]))),
    CONSTRAINT ledger_refusal_requests_check CHECK ((requests > 0))
);
CREATE TABLE public.ledger_replica (
    id uuid NOT NULL,
    started_at timestamp with time zone NOT NULL,
    lease_until timestamp with time zone NOT NULL
);
CREATE TABLE public.ledger_transfer (
    id bigint NOT NULL,
    account_id text NOT NULL,
    debit_account text NOT NULL,
    credit_account text NOT NULL,
    amount_micros bigint NOT NULL,
    balance_micros bigint NOT NULL,
    type text NOT NULL,
    call_id uuid,
    entry_id text,
    reason text,
    at timestamp with time zone NOT NULL,
    CONSTRAINT ledger_transfer_amount_micros_check CHECK ((amount_micros > 0)),
    CONSTRAINT ledger_transfer_balance_micros_check CHECK ((balance_micros >= 0)),
    CONSTRAINT ledger_transfer_check CHECK (((debit_account <> credit_account) AND ((account_id = debit_account) OR (account_id = credit_account)))),
    CONSTRAINT ledger_transfer_check1 CHECK (((call_id IS NULL) <> (entry_id IS NULL))),
    CONSTRAINT ledger_transfer_type_check CHECK ((type = ANY (ARRAY['grant'::text, 'charge'::text, 'adjustment'::text])))
);
ALTER TABLE public.ledger_transfer ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.ledger_transfer_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.ledger_usage (
    account_id text NOT NULL,
    mode text NOT NULL,
    hour timestamp with time zone NOT NULL,
    key_id text NOT NULL,
    model text NOT NULL,
    endpoint text NOT NULL,
    requests bigint NOT NULL,
    errors bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cost_micros bigint NOT NULL
)
WITH (fillfactor='70');
CREATE TABLE public.mail_outbox (
    id uuid NOT NULL,
    state text NOT NULL,
    content text,
    sealed_by text NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT mail_outbox_check CHECK (((state = 'waiting'::text) = (content IS NOT NULL))),
    CONSTRAINT mail_outbox_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'given_up'::text])))
);
CREATE TABLE public.mail_smtp_migration (
    name character varying(255) NOT NULL,
    "timestamp" character varying(255) NOT NULL
);
CREATE TABLE public.mail_smtp_migration_lock (
    id character varying(255) NOT NULL,
    is_locked integer DEFAULT 0 NOT NULL
);
CREATE TABLE public.queue_dead_letter (
    id bigint NOT NULL,
    job text NOT NULL,
    payload text NOT NULL,
    key text,
    attempts integer NOT NULL,
    error text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    died_at timestamp with time zone NOT NULL
);
CREATE TABLE public.queue_payload (
    id bigint NOT NULL,
    job text NOT NULL,
    payload text NOT NULL,
    key text,
    priority integer NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone NOT NULL,
    lease uuid,
    error text,
    created_at timestamp with time zone NOT NULL
);
ALTER TABLE public.queue_payload ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.queue_payload_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.queue_postgres_migration (
    name character varying(255) NOT NULL,
    "timestamp" character varying(255) NOT NULL
);
CREATE TABLE public.queue_postgres_migration_lock (
    id character varying(255) NOT NULL,
    is_locked integer DEFAULT 0 NOT NULL
);
CREATE TABLE public.retrieval_chunk (
    document_no bigint NOT NULL,
    idx integer NOT NULL,
    page integer,
    start_at integer NOT NULL,
    end_at integer NOT NULL,
    text text NOT NULL,
    words tsvector NOT NULL
);
CREATE TABLE public.retrieval_document (
    no bigint NOT NULL,
    file_id text NOT NULL,
    account text NOT NULL,
    mode text NOT NULL,
    key_id text,
    state text NOT NULL,
    epoch integer DEFAULT 0 NOT NULL,
    failures integer DEFAULT 0 NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    pages integer,
    characters bigint DEFAULT 0 NOT NULL,
    chunks integer DEFAULT 0 NOT NULL,
    embedded integer DEFAULT 0 NOT NULL,
    tokens bigint DEFAULT 0 NOT NULL,
    cost_micros bigint DEFAULT 0 NOT NULL,
    space text,
    dimensions integer,
    created_at timestamp with time zone NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    removed_at timestamp with time zone,
    CONSTRAINT retrieval_document_check CHECK (((state = 'removed'::text) = (removed_at IS NOT NULL))),
    CONSTRAINT retrieval_document_mode_check CHECK ((mode = ANY (ARRAY['live'::text, 'test'::text]))),
    CONSTRAINT retrieval_document_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'extracting'::text, 'embedding'::text, 'ready'::text, 'failed'::text, 'removed'::text])))
);
CREATE SEQUENCE public.retrieval_document_no_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.retrieval_document_no_seq OWNED BY public.retrieval_document.no;
CREATE TABLE public.retrieval_tenant (
    no bigint NOT NULL,
    account text NOT NULL,
    mode text NOT NULL,
    version bigint NOT NULL,
    CONSTRAINT retrieval_tenant_mode_check CHECK ((mode = ANY (ARRAY['live'::text, 'test'::text])))
);
CREATE SEQUENCE public.retrieval_tenant_no_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.retrieval_tenant_no_seq OWNED BY public.retrieval_tenant.no;
CREATE TABLE public.retrieval_vector (
    document_no bigint NOT NULL,
    idx integer NOT NULL,
    space text NOT NULL,
    vector bytea NOT NULL
);
ALTER TABLE ONLY public.retrieval_vector ALTER COLUMN vector SET STORAGE MAIN;
CREATE TABLE public.signing_key (
    kid text NOT NULL,
    purpose text NOT NULL,
    public_jwk jsonb NOT NULL,
    private_jwk text,
    sealed_by text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    retires_at timestamp with time zone NOT NULL,
    accepted_until timestamp with time zone,
    CONSTRAINT signing_key_check CHECK ((accepted_until > retires_at)),
    CONSTRAINT signing_key_purpose_check CHECK ((purpose = ANY (ARRAY['session'::text, 'receipt'::text])))
);
CREATE TABLE public.signing_keys_migration (
    name character varying(255) NOT NULL,
    "timestamp" character varying(255) NOT NULL
);
CREATE TABLE public.signing_keys_migration_lock (
    id character varying(255) NOT NULL,
    is_locked integer DEFAULT 0 NOT NULL
);
CREATE TABLE public.webhook_delivery (
    seq bigint NOT NULL,
    id text NOT NULL,
    webhook_id text NOT NULL,
    event text NOT NULL,
    body text NOT NULL,
    state text NOT NULL,
    once boolean NOT NULL,
    round integer NOT NULL,
    tries integer NOT NULL,
    round_at timestamp with time zone NOT NULL,
    next_attempt_at timestamp with time zone,
    attempts text DEFAULT '[]'::text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT webhook_delivery_check CHECK (((state = 'pending'::text) = (next_attempt_at IS NOT NULL))),
    CONSTRAINT webhook_delivery_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'succeeded'::text, 'giveup'::text])))
);
ALTER TABLE public.webhook_delivery ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.webhook_delivery_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.webhook_http_migration (
    name character varying(255) NOT NULL,
    "timestamp" character varying(255) NOT NULL
);
CREATE TABLE public.webhook_http_migration_lock (
    id character varying(255) NOT NULL,
    is_locked integer DEFAULT 0 NOT NULL
);
CREATE TABLE public.webhook_registration (
    seq bigint NOT NULL,
    id text NOT NULL,
    account text NOT NULL,
    mode text NOT NULL,
    url text NOT NULL,
    events text[] NOT NULL,
    description text,
    status text NOT NULL,
    secret text NOT NULL,
    old_secret text,
    old_secret_until timestamp with time zone,
    created_at timestamp with time zone NOT NULL,
    last_delivery_at timestamp with time zone,
    last_error text,
    failing_since timestamp with time zone,
    CONSTRAINT webhook_registration_mode_check CHECK ((mode = ANY (ARRAY['live'::text, 'test'::text]))),
    CONSTRAINT webhook_registration_status_check CHECK ((status = ANY (ARRAY['active'::text, 'disabled'::text])))
);
ALTER TABLE public.webhook_registration ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.webhook_registration_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
ALTER TABLE ONLY public.batches_batch ALTER COLUMN seq SET DEFAULT nextval('public.batches_batch_seq_seq'::regclass);
ALTER TABLE ONLY public.files_file ALTER COLUMN seq SET DEFAULT nextval('public.files_file_seq_seq'::regclass);
ALTER TABLE ONLY public.retrieval_document ALTER COLUMN no SET DEFAULT nextval('public.retrieval_document_no_seq'::regclass);
ALTER TABLE ONLY public.retrieval_tenant ALTER COLUMN no SET DEFAULT nextval('public.retrieval_tenant_no_seq'::regclass);
INSERT INTO public.accounts_account VALUES ('acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'admin@rakit.local', '$argon2id$v=19$m=19456,t=2,p=1$FhOEUsSeGAj6TFi1f4sowg$m2DvANVTkKwgIB/+3KAB8n7K5kZzv3Wdx8PVviGT2Zc', 'admin', true, '2026-11-23 08:21:54.183+00', NULL, '2026-11-23 08:21:54.183+00', 'en', 1);
INSERT INTO public.accounts_audit OVERRIDING SYSTEM VALUE VALUES ('audit_IeJcDAvsigkYCdLh4J9XDCcX', 1, 'system', 'account.create', 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', NULL, '{"email":"admin@rakit.local","role":"admin","locale":"en"}', '2026-11-23 08:21:54.255+00');
INSERT INTO public.accounts_audit OVERRIDING SYSTEM VALUE VALUES ('audit_I3fN9VOqgglbn3PV9MH975IW', 2, 'system', 'key.create', 'key_120qO1DQ6oXUV6wLWRGbIKfF', NULL, '{"account":"acct_Z7ASEBmGR8RSu6gSr6AYc5rB","name":"First key","test":false,"scopes":["*"],"limits":{"rpm":1000000,"rpd":100000000,"concurrency":1000,"monthly_cap_idr":0,"body_mb":50}}', '2026-11-23 08:21:54.273+00');
INSERT INTO public.accounts_key OVERRIDING SYSTEM VALUE VALUES ('key_120qO1DQ6oXUV6wLWRGbIKfF', 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'First key', '\x676302102ed889a6dd099fddc51cd52cbafef2c4895dafc7ef592fdf6306d177', 'svc_live_gt5', 'live', '{*}', 1000000, 100000000, 1000, 0, '2026-11-23 08:21:54.183+00', '2026-11-23 08:21:57.099+00', NULL, 1, NULL, false, 50);
INSERT INTO public.accounts_migration VALUES ('001-account-and-key', '2026-11-23T08:21:53.947Z');
INSERT INTO public.accounts_migration VALUES ('002-sessions', '2026-11-23T08:21:53.992Z');
INSERT INTO public.accounts_migration VALUES ('003-audit', '2026-11-23T08:21:54.043Z');
INSERT INTO public.accounts_migration VALUES ('004-keys', '2026-11-23T08:21:54.065Z');
INSERT INTO public.accounts_migration VALUES ('005-admin', '2026-11-23T08:21:54.073Z');
INSERT INTO public.accounts_migration VALUES ('006-key-expiry', '2026-11-23T08:21:54.095Z');
INSERT INTO public.accounts_migration VALUES ('007-body-limit', '2026-11-23T08:21:54.101Z');
INSERT INTO public.accounts_migration_lock VALUES ('migration_lock', 0);
INSERT INTO public.batches_batch VALUES ('batch-nYBW0CbnvvJT9x2dcTJm5kYn', 1, 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'live', 'key_120qO1DQ6oXUV6wLWRGbIKfF', '/v1/chat/completions', 'completed', 'file-FQiY6CRRi02P4xLWDS4v8Hdu', 'file-oLIo7DH50ojGeH4hxK9JRBot', 'file-8kWcfokqe6J5bowYFhEdwaDp', NULL, '[{"code": "model_not_found", "line": 2, "param": "body.model", "message": "body.model: There is no such model here. Use ''svc-lyt'', ''svc-omni''. Lines that name it: 1."}]', 2, 1, 1, 4500, 1, NULL, 0, 0, '2026-11-23 08:21:59.277+00', '2026-11-23 08:21:59.513+00', '2026-11-23 08:21:59.963+00', '2026-11-24 08:21:59.277+00', '2026-12-23 08:21:59.277+00');
INSERT INTO public.billing_ledger_migration VALUES ('001-ledger', '2026-11-23T08:21:53.430Z');
INSERT INTO public.billing_ledger_migration VALUES ('002-children', '2026-11-23T08:21:53.438Z');
INSERT INTO public.billing_ledger_migration VALUES ('003-functions', '2026-11-23T08:21:53.744Z');
INSERT INTO public.billing_ledger_migration VALUES ('004-refusals', '2026-11-23T08:21:53.753Z');
INSERT INTO public.billing_ledger_migration VALUES ('005-evidence', '2026-11-23T08:21:53.768Z');
INSERT INTO public.billing_ledger_migration_lock VALUES ('migration_lock', 0);
INSERT INTO public.endpoint_batches_migration VALUES ('001-batches', '2026-11-23T08:21:56.201Z');
INSERT INTO public.endpoint_batches_migration_lock VALUES ('migration_lock', 0);
INSERT INTO public.endpoint_files_migration VALUES ('001-files', '2026-11-23T08:21:55.519Z');
INSERT INTO public.endpoint_files_migration VALUES ('002-status-of-uploads', '2026-11-23T08:21:55.547Z');
INSERT INTO public.endpoint_files_migration VALUES ('003-ingest', '2026-11-23T08:21:55.558Z');
INSERT INTO public.endpoint_files_migration_lock VALUES ('migration_lock', 0);
INSERT INTO public.endpoint_retrieval_migration VALUES ('001-retrieval', '2026-11-23T08:21:55.844Z');
INSERT INTO public.endpoint_retrieval_migration_lock VALUES ('migration_lock', 0);
INSERT INTO public.files_file VALUES ('file-FQiY6CRRi02P4xLWDS4v8Hdu', 1, 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'live', 'in.jsonl', 'batch_input', 'processed', NULL, 271, true, 'files/live/acct_Z7ASEBmGR8RSu6gSr6AYc5rB/01a2077f-613e-73d4-9237-a33e5b322319', '2026-11-23 08:21:58.351+00', '2026-12-23 08:21:58.351+00', NULL, NULL, 'key_120qO1DQ6oXUV6wLWRGbIKfF', '{}', true);
INSERT INTO public.files_file VALUES ('file-oEsdbfVfGXKTdqlzfCjONR5m', 2, 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'live', 'unused.jsonl', 'batch_input', 'processed', NULL, 141, true, 'files/live/acct_Z7ASEBmGR8RSu6gSr6AYc5rB/01a2077f-6255-7cdb-b306-cbb3e4fe978e', '2026-11-23 08:21:58.959+00', '2026-12-23 08:21:58.959+00', NULL, NULL, 'key_120qO1DQ6oXUV6wLWRGbIKfF', '{}', true);
INSERT INTO public.files_file VALUES ('file-gKmYJqkLV92Elk7DMujzRQTw', 3, 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'live', 'notes.txt', 'knowledge', 'processing', NULL, 16, true, 'files/live/acct_Z7ASEBmGR8RSu6gSr6AYc5rB/01a2077f-64bc-794d-93b5-d9a29ace0428', '2026-11-23 08:21:59.201+00', '2026-12-23 08:21:59.201+00', NULL, '{"stage": "extracting", "chunks": 0, "tokens": 0, "chunks_embedded": 0}', 'key_120qO1DQ6oXUV6wLWRGbIKfF', '{}', true);
INSERT INTO public.files_file VALUES ('file-oLIo7DH50ojGeH4hxK9JRBot', 4, 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'live', 'batch-nYBW0CbnvvJT9x2dcTJm5kYn_output.jsonl', 'batch_output', 'processed', NULL, 556, false, 'files/live/acct_Z7ASEBmGR8RSu6gSr6AYc5rB/01a2077f-6745-7d81-9347-b58139989c11', '2026-11-23 08:21:59.971+00', '2026-12-23 08:21:59.865+00', NULL, NULL, NULL, '{}', true);
INSERT INTO public.files_file VALUES ('file-8kWcfokqe6J5bowYFhEdwaDp', 5, 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'live', 'batch-nYBW0CbnvvJT9x2dcTJm5kYn_error.jsonl', 'batch_error', 'processed', NULL, 228, false, 'files/live/acct_Z7ASEBmGR8RSu6gSr6AYc5rB/01a2077f-67b9-7553-91ec-4d7b7f969f80', '2026-11-23 08:21:59.973+00', '2026-12-23 08:21:59.957+00', NULL, NULL, NULL, '{}', true);
INSERT INTO public.files_usage VALUES ('acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'live', 428, 3);
INSERT INTO public.idempotency_postgres_migration VALUES ('001-key', '2026-11-23T08:21:54.459Z');
INSERT INTO public.idempotency_postgres_migration VALUES ('002-sealed-reply', '2026-11-23T08:21:54.475Z');
INSERT INTO public.idempotency_postgres_migration_lock VALUES ('migration_lock', 0);
INSERT INTO public.ledger_account VALUES ('acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 49999967000, 0, '2026-11-23 08:21:59.651+00');
INSERT INTO public.ledger_call VALUES ('01a2077f-5d02-725a-a84b-4fff5b0dd118', 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'key_120qO1DQ6oXUV6wLWRGbIKfF', 'live', 'all', 'settled', 1, '2026-11-23 08:21:57.134+00', '2026-11-23 08:21:57.197+00', 'd120b5c8-0eeb-4e5a-b704-a96101299b7b', NULL, 'chat.completions', 'req_oaYhrYN036qUTeiDtf3bAJCx', 'svc-lyt', '{"factor":1,"models":{"svc-lyt":{"input":"1500","output":"6000","cacheRead":"150","cacheWrite":"1875","image":"0","searchUnit":"0"}}}', '2026-11-23 08:27:57.122+00', 12291000, 9000, '{"svc-lyt": {"images": 0, "inputTokens": 2, "searchUnits": 0, "outputTokens": 1, "cacheReadTokens": 0, "reasoningTokens": 0, "cacheWriteTokens": 0}}', 2, 1, 200, false, '{"answer": "sha256:e662c692fc7bf582b3ea09af56568c6616bbeaa94b581fe939cd219032b7e61f", "config": "sha256:a4dfe31bef1770c5a01bc409a420c619e53b1df74bf9ab5e42c24e2ec6ca00c8", "request": "sha256:f36853b82acf231292bff31ea3be7ecf324a552b654d76b3c47683c5b27cc79b", "version": "0.1.0"}');
INSERT INTO public.ledger_call VALUES ('01a2077f-5ecd-7248-9bcc-9648e39c6e7a', 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'key_120qO1DQ6oXUV6wLWRGbIKfF', 'live', 'all', 'settled', 2, '2026-11-23 08:21:57.582+00', '2026-11-23 08:21:57.619+00', 'd120b5c8-0eeb-4e5a-b704-a96101299b7b', NULL, 'chat.completions', 'req_u4WBR8DwOKX1i4ufQvRBUfN6', 'svc-lyt', '{"factor":1,"models":{"svc-lyt":{"input":"1500","output":"6000","cacheRead":"150","cacheWrite":"1875","image":"0","searchUnit":"0"}}}', '2026-11-23 08:27:57.581+00', 12291000, 9000, '{"svc-lyt": {"images": 0, "inputTokens": 2, "searchUnits": 0, "outputTokens": 1, "cacheReadTokens": 0, "reasoningTokens": 0, "cacheWriteTokens": 0}}', 2, 1, 200, false, '{"answer": "sha256:0661270b628ca9422474d2a8e85892abb9918ccf476f955b91eebeb4953489ef", "config": "sha256:a4dfe31bef1770c5a01bc409a420c619e53b1df74bf9ab5e42c24e2ec6ca00c8", "request": "sha256:d66e7d06c1cd080503b66903dfe8a09f2fb6fde48cbf80171af4128748dcdbf7", "version": "0.1.0"}');
INSERT INTO public.ledger_call VALUES ('01a2077f-5f0c-7c11-9f7a-17f147b3ac0f', 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'key_120qO1DQ6oXUV6wLWRGbIKfF', 'live', 'all', 'settled', 3, '2026-11-23 08:21:57.645+00', '2026-11-23 08:21:57.783+00', 'd120b5c8-0eeb-4e5a-b704-a96101299b7b', NULL, 'chat.completions', 'req_wyhuqloEOtr8YPt6D5c2KIeY', 'svc-lyt', '{"factor":1,"models":{"svc-lyt":{"input":"1500","output":"6000","cacheRead":"150","cacheWrite":"1875","image":"0","searchUnit":"0"}}}', '2026-11-23 08:27:57.644+00', 12291000, 9000, '{"svc-lyt": {"images": 0, "inputTokens": 2, "searchUnits": 0, "outputTokens": 1, "cacheReadTokens": 0, "reasoningTokens": 0, "cacheWriteTokens": 0}}', 2, 1, 200, false, '{"answer": "sha256:0a25a98605bdfb6fe489d91e1366d8809ab75ac647ab1f8564d065d6d8c7e8ca", "config": "sha256:a4dfe31bef1770c5a01bc409a420c619e53b1df74bf9ab5e42c24e2ec6ca00c8", "request": "sha256:7e1d8711745418086014cbc76e0d9faffdbc92174f6c4a8532c9e0737f77b315", "version": "0.1.0"}');
INSERT INTO public.ledger_call VALUES ('01a2077f-5fc8-7749-9624-0a1e631667fc', 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'key_120qO1DQ6oXUV6wLWRGbIKfF', 'live', 'all', 'settled', 4, '2026-11-23 08:21:57.833+00', '2026-11-23 08:21:57.877+00', 'd120b5c8-0eeb-4e5a-b704-a96101299b7b', NULL, 'embeddings', 'req_nU4459RQM6A1kBkMmcf8VpwA', 'svc-embed', '{"factor":1,"models":{"svc-embed":{"input":"1500","output":"0","cacheRead":"0","cacheWrite":"0","image":"25","searchUnit":"0"}}}', '2026-11-23 08:27:57.832+00', 1500, 1500, '{"svc-embed": {"images": 0, "inputTokens": 1, "searchUnits": 0, "outputTokens": 0, "cacheReadTokens": 0, "reasoningTokens": 0, "cacheWriteTokens": 0}}', 1, 0, 200, false, NULL);
INSERT INTO public.ledger_call VALUES ('01a2077f-60fb-7d37-a82e-96901afabf3c', 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'key_120qO1DQ6oXUV6wLWRGbIKfF', 'live', 'all', 'settled', 5, '2026-11-23 08:21:58.179+00', '2026-11-23 08:21:58.374+00', 'd120b5c8-0eeb-4e5a-b704-a96101299b7b', NULL, 'files.create', 'req_RJ5ZF0A7FIEPdyyKSBnpUxu9', NULL, '{"factor":1,"models":{}}', '2026-11-23 08:27:58.139+00', 0, 0, '{}', 0, 0, 200, false, NULL);
INSERT INTO public.ledger_call VALUES ('01a2077f-624c-7781-bb65-36bd7f361446', 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'key_120qO1DQ6oXUV6wLWRGbIKfF', 'live', 'all', 'settled', 6, '2026-11-23 08:21:58.476+00', '2026-11-23 08:21:58.977+00', 'd120b5c8-0eeb-4e5a-b704-a96101299b7b', NULL, 'files.create', 'req_un8YB8t2sAYq8op4P6SpvIft', NULL, '{"factor":1,"models":{}}', '2026-11-23 08:27:58.476+00', 0, 0, '{}', 0, 0, 200, false, NULL);
INSERT INTO public.ledger_call VALUES ('01a2077f-6484-744c-a98e-3b2ca15e566c', 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'key_120qO1DQ6oXUV6wLWRGbIKfF', 'live', 'all', 'settled', 7, '2026-11-23 08:21:59.044+00', '2026-11-23 08:21:59.207+00', 'd120b5c8-0eeb-4e5a-b704-a96101299b7b', NULL, 'files.create', 'req_S6fu3WmwOV2uWw9HzzIKX04g', NULL, '{"factor":1,"models":{}}', '2026-11-23 08:27:59.044+00', 0, 0, '{}', 0, 0, 200, false, NULL);
INSERT INTO public.ledger_call VALUES ('01a2077f-6530-7b77-954d-251eca016320', 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'key_120qO1DQ6oXUV6wLWRGbIKfF', 'live', 'all', 'settled', 8, '2026-11-23 08:21:59.217+00', '2026-11-23 08:21:59.292+00', 'd120b5c8-0eeb-4e5a-b704-a96101299b7b', NULL, 'batches.create', 'req_dQXnNdxEkZjMbGiMZ6SBHCRc', NULL, '{"factor":1,"models":{}}', '2026-11-23 08:27:59.216+00', 0, 0, '{}', 0, 0, 200, false, NULL);
INSERT INTO public.ledger_call VALUES ('01a2077f-6673-7818-afd8-4a3d8dc05bc1', 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'key_120qO1DQ6oXUV6wLWRGbIKfF', 'live', 'money', 'settled', NULL, '2026-11-23 08:21:59.567+00', '2026-11-23 08:21:59.651+00', 'd120b5c8-0eeb-4e5a-b704-a96101299b7b', 'batch-nYBW0CbnvvJT9x2dcTJm5kYn', 'chat.completions', 'batch_req_bb10f2687fd15ecc20d1ea91', 'svc-lyt', '{"factor":0.5,"models":{"svc-lyt":{"input":"1500","output":"6000","cacheRead":"150","cacheWrite":"1875","image":"0","searchUnit":"0"}}}', '2026-11-23 08:27:59.539+00', 6145500, 4500, '{"svc-lyt": {"images": 0, "inputTokens": 2, "searchUnits": 0, "outputTokens": 1, "cacheReadTokens": 0, "reasoningTokens": 0, "cacheWriteTokens": 0}}', 2, 1, 200, false, '{"answer": "sha256:e662c692fc7bf582b3ea09af56568c6616bbeaa94b581fe939cd219032b7e61f", "config": "sha256:a4dfe31bef1770c5a01bc409a420c619e53b1df74bf9ab5e42c24e2ec6ca00c8", "request": "sha256:f36853b82acf231292bff31ea3be7ecf324a552b654d76b3c47683c5b27cc79b", "version": "0.1.0"}');
INSERT INTO public.ledger_call VALUES ('01a2077f-66f5-79f0-85bc-ef34050d3d69', 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'key_120qO1DQ6oXUV6wLWRGbIKfF', 'live', 'all', 'settled', 9, '2026-11-23 08:21:59.675+00', '2026-11-23 08:21:59.752+00', 'd120b5c8-0eeb-4e5a-b704-a96101299b7b', NULL, 'batches.retrieve', 'req_6Ydxni8QSBzsEOZrD6difMtH', NULL, '{"factor":1,"models":{}}', '2026-11-23 08:27:59.669+00', 0, 0, '{}', 0, 0, 200, false, NULL);
INSERT INTO public.ledger_call VALUES ('01a2077f-68d1-7f67-9249-ce437a234e88', 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'key_120qO1DQ6oXUV6wLWRGbIKfF', 'live', 'all', 'settled', 10, '2026-11-23 08:22:00.146+00', '2026-11-23 08:22:00.173+00', 'd120b5c8-0eeb-4e5a-b704-a96101299b7b', NULL, 'batches.retrieve', 'req_gFEG90InTgOi0wbFowMWiwWA', NULL, '{"factor":1,"models":{}}', '2026-11-23 08:28:00.145+00', 0, 0, '{}', 0, 0, 200, false, NULL);
INSERT INTO public.ledger_call VALUES ('01a2077f-68fc-7d96-b973-163858a1d3f0', 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'key_120qO1DQ6oXUV6wLWRGbIKfF', 'live', 'all', 'settled', 11, '2026-11-23 08:22:00.222+00', '2026-11-23 08:22:00.331+00', 'd120b5c8-0eeb-4e5a-b704-a96101299b7b', NULL, 'webhooks.create', 'req_daqBYZ9aLo5IoRt1HxbzvjK9', NULL, '{"factor":1,"models":{}}', '2026-11-23 08:28:00.188+00', 0, 0, '{}', 0, 0, 200, false, NULL);
INSERT INTO public.ledger_key VALUES ('key_120qO1DQ6oXUV6wLWRGbIKfF', 11, '2026-11-23 08:22:00.222+00', '2026-11-23', 11, 0, '2026-11-01', 33000, 0);
INSERT INTO public.ledger_replica VALUES ('d120b5c8-0eeb-4e5a-b704-a96101299b7b', '2026-11-23 08:21:53.804+00', '2026-11-23 08:22:00.441+00');
INSERT INTO public.ledger_transfer OVERRIDING SYSTEM VALUE VALUES (1, 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', '@grants', 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 50000000000, 50000000000, 'grant', NULL, 'free-credit:acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'Free credit', '2026-11-23 08:21:54.281+00');
INSERT INTO public.ledger_transfer OVERRIDING SYSTEM VALUE VALUES (2, 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', '@revenue', 9000, 49999991000, 'charge', '01a2077f-5d02-725a-a84b-4fff5b0dd118', NULL, NULL, '2026-11-23 08:21:57.197+00');
INSERT INTO public.ledger_transfer OVERRIDING SYSTEM VALUE VALUES (3, 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', '@revenue', 9000, 49999982000, 'charge', '01a2077f-5ecd-7248-9bcc-9648e39c6e7a', NULL, NULL, '2026-11-23 08:21:57.619+00');
INSERT INTO public.ledger_transfer OVERRIDING SYSTEM VALUE VALUES (4, 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', '@revenue', 9000, 49999973000, 'charge', '01a2077f-5f0c-7c11-9f7a-17f147b3ac0f', NULL, NULL, '2026-11-23 08:21:57.783+00');
INSERT INTO public.ledger_transfer OVERRIDING SYSTEM VALUE VALUES (5, 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', '@revenue', 1500, 49999971500, 'charge', '01a2077f-5fc8-7749-9624-0a1e631667fc', NULL, NULL, '2026-11-23 08:21:57.877+00');
INSERT INTO public.ledger_transfer OVERRIDING SYSTEM VALUE VALUES (6, 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', '@revenue', 4500, 49999967000, 'charge', '01a2077f-6673-7818-afd8-4a3d8dc05bc1', NULL, NULL, '2026-11-23 08:21:59.651+00');
INSERT INTO public.ledger_usage VALUES ('acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'live', '2026-11-23 08:00:00+00', 'key_120qO1DQ6oXUV6wLWRGbIKfF', 'svc-embed', 'embeddings', 1, 0, 1, 0, 1500);
INSERT INTO public.ledger_usage VALUES ('acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'live', '2026-11-23 08:00:00+00', 'key_120qO1DQ6oXUV6wLWRGbIKfF', '', 'files.create', 3, 0, 0, 0, 0);
INSERT INTO public.ledger_usage VALUES ('acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'live', '2026-11-23 08:00:00+00', 'key_120qO1DQ6oXUV6wLWRGbIKfF', '', 'batches.create', 1, 0, 0, 0, 0);
INSERT INTO public.ledger_usage VALUES ('acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'live', '2026-11-23 08:00:00+00', 'key_120qO1DQ6oXUV6wLWRGbIKfF', 'svc-lyt', 'chat.completions', 4, 0, 8, 4, 31500);
INSERT INTO public.ledger_usage VALUES ('acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'live', '2026-11-23 08:00:00+00', 'key_120qO1DQ6oXUV6wLWRGbIKfF', '', 'batches.retrieve', 2, 0, 0, 0, 0);
INSERT INTO public.ledger_usage VALUES ('acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'live', '2026-11-23 08:00:00+00', 'key_120qO1DQ6oXUV6wLWRGbIKfF', '', 'webhooks.create', 1, 0, 0, 0, 0);
INSERT INTO public.mail_smtp_migration VALUES ('001-outbox', '2026-11-23T08:21:53.091Z');
INSERT INTO public.mail_smtp_migration_lock VALUES ('migration_lock', 0);
INSERT INTO public.queue_payload OVERRIDING SYSTEM VALUE VALUES (1, 'retrieval-ingest', '{"file":"file-gKmYJqkLV92Elk7DMujzRQTw"}', 'file-gKmYJqkLV92Elk7DMujzRQTw', -1, 0, '2026-11-23 08:22:00.437+00', NULL, NULL, '2026-11-23 08:21:59.205+00');
INSERT INTO public.queue_postgres_migration VALUES ('001-payload', '2026-11-23T08:21:54.851Z');
INSERT INTO public.queue_postgres_migration_lock VALUES ('migration_lock', 0);
INSERT INTO public.retrieval_document VALUES (1, 'file-gKmYJqkLV92Elk7DMujzRQTw', 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'live', 'key_120qO1DQ6oXUV6wLWRGbIKfF', 'extracting', 1, 0, '{}', NULL, 0, 0, 0, 0, 0, NULL, NULL, '2026-11-23 08:21:59.202+00', '2026-12-23 08:21:59.201+00', NULL);
INSERT INTO public.signing_key VALUES ('9vmZ5Ky-3oaPO8vrQ9wcxNtJXwQvX1OrmAE3Ba-5Q38', 'session', '{"x": "Cwz9r5Jqxk6JhyV249jfZa5i3fXTyqLM9FnxIbtVueM", "crv": "Ed25519", "kty": "OKP"}', '8363ce3af230.Q9cDChpRnKpIJmeq7zI0OycIHLJwflpY57Ia7_mZW9vjcFrmswC-YgPtea4yTCPd9GordpPC-9Zg6BEsCcLmJdju-N1-azAoYy59Pp8mf-15VkVY2uySByhXwJNJ9ZvfKVh8Z2Yu8JBywMn4gH4j9-Vn5uMZ28dBTir6NofwH4s9oy83DBRU871C-R_BV9dN5XPYQjuGtNEj-r1qpA', '8363ce3af230', '2026-11-23 08:21:52.799+00', '2026-12-23 08:21:52.799+00', '2026-12-24 09:21:52.799+00');
INSERT INTO public.signing_key VALUES ('vjRPaXFvWEGh_7ZEdxBnbZhA53M_OsCfXagqCHZ-7qo', 'receipt', '{"x": "aziVr2J1G-rBoI3LU38fJu2u9KFZGPms3DfLq2j9Lmw", "crv": "Ed25519", "kty": "OKP"}', '8363ce3af230.1nFnPXnsVmmwG1M3LvkSC6D4BSu4sK00dGgj30e2Oc00-I-zfX1SDmdxrQpsk5MP1RrMC-0ix1tByccdpMKXYZOVKI3nRUoE7E55fQh-rMstr2ovl5Bz5FWCqKeYdhdrg5jZCHkTOoR0isqpN5NtN9ukTLmRtI1wB8jr5pfLErten7kWW39kfCbJRW7Uzer5uqHlMoR2iKD0XCIciA', '8363ce3af230', '2026-11-23 08:21:52.913+00', '2026-12-23 08:21:52.913+00', NULL);
INSERT INTO public.signing_keys_migration VALUES ('001-signing-key', '2026-11-23T08:21:52.684Z');
INSERT INTO public.signing_keys_migration_lock VALUES ('migration_lock', 0);
INSERT INTO public.webhook_http_migration VALUES ('001-webhook', '2026-11-23T08:21:55.059Z');
INSERT INTO public.webhook_http_migration_lock VALUES ('migration_lock', 0);
INSERT INTO public.webhook_registration OVERRIDING SYSTEM VALUE VALUES (1, 'wh-JrPs7HuSV3bPkOUdXcqhmjEm', 'acct_Z7ASEBmGR8RSu6gSr6AYc5rB', 'live', 'https://example.com/', '{batch.completed}', NULL, 'active', '8363ce3af230.atC6XDwapIOFzDdDasooriUuGUFbslWJfkoDuThQGn2x5QAcW2ppcDWWwJqDffEOSJpOdwJWxAwgsZrN1h4Ut03v', NULL, NULL, '2026-11-23 08:22:00.319+00', NULL, NULL, NULL);
SELECT pg_catalog.setval('public.accounts_audit_seq_seq', 2, true);
SELECT pg_catalog.setval('public.accounts_key_seq_seq', 1, true);
SELECT pg_catalog.setval('public.batches_batch_seq_seq', 1, true);
SELECT pg_catalog.setval('public.files_file_seq_seq', 5, true);
SELECT pg_catalog.setval('public.ledger_transfer_id_seq', 6, true);
SELECT pg_catalog.setval('public.queue_payload_id_seq', 1, true);
SELECT pg_catalog.setval('public.retrieval_document_no_seq', 1, true);
SELECT pg_catalog.setval('public.retrieval_tenant_no_seq', 1, false);
SELECT pg_catalog.setval('public.webhook_delivery_seq_seq', 1, false);
SELECT pg_catalog.setval('public.webhook_registration_seq_seq', 1, true);
ALTER TABLE ONLY public.accounts_account
    ADD CONSTRAINT accounts_account_email_key UNIQUE (email);
ALTER TABLE ONLY public.accounts_account
    ADD CONSTRAINT accounts_account_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.accounts_attempt
    ADD CONSTRAINT accounts_attempt_pkey PRIMARY KEY (bucket);
ALTER TABLE ONLY public.accounts_audit
    ADD CONSTRAINT accounts_audit_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.accounts_key
    ADD CONSTRAINT accounts_key_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.accounts_key
    ADD CONSTRAINT accounts_key_sha256_key UNIQUE (sha256);
ALTER TABLE ONLY public.accounts_migration_lock
    ADD CONSTRAINT accounts_migration_lock_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.accounts_migration
    ADD CONSTRAINT accounts_migration_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.accounts_token
    ADD CONSTRAINT accounts_token_pkey PRIMARY KEY (sha256);
ALTER TABLE ONLY public.batches_batch
    ADD CONSTRAINT batches_batch_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.batches_line
    ADD CONSTRAINT batches_line_pkey PRIMARY KEY (batch_id, line);
ALTER TABLE ONLY public.batches_part
    ADD CONSTRAINT batches_part_blob_key_key UNIQUE (blob_key);
ALTER TABLE ONLY public.batches_part
    ADD CONSTRAINT batches_part_pkey PRIMARY KEY (batch_id, kind, part);
ALTER TABLE ONLY public.billing_ledger_migration_lock
    ADD CONSTRAINT billing_ledger_migration_lock_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.billing_ledger_migration
    ADD CONSTRAINT billing_ledger_migration_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.endpoint_batches_migration_lock
    ADD CONSTRAINT endpoint_batches_migration_lock_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.endpoint_batches_migration
    ADD CONSTRAINT endpoint_batches_migration_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.endpoint_files_migration_lock
    ADD CONSTRAINT endpoint_files_migration_lock_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.endpoint_files_migration
    ADD CONSTRAINT endpoint_files_migration_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.endpoint_retrieval_migration_lock
    ADD CONSTRAINT endpoint_retrieval_migration_lock_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.endpoint_retrieval_migration
    ADD CONSTRAINT endpoint_retrieval_migration_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.files_file
    ADD CONSTRAINT files_file_blob_key_key UNIQUE (blob_key);
ALTER TABLE ONLY public.files_file
    ADD CONSTRAINT files_file_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.files_incoming
    ADD CONSTRAINT files_incoming_blob_key_key UNIQUE (blob_key);
ALTER TABLE ONLY public.files_incoming
    ADD CONSTRAINT files_incoming_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.files_part
    ADD CONSTRAINT files_part_blob_key_key UNIQUE (blob_key);
ALTER TABLE ONLY public.files_part
    ADD CONSTRAINT files_part_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.files_trash
    ADD CONSTRAINT files_trash_pkey PRIMARY KEY (blob_key);
ALTER TABLE ONLY public.files_upload
    ADD CONSTRAINT files_upload_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.files_usage
    ADD CONSTRAINT files_usage_pkey PRIMARY KEY (account, mode);
ALTER TABLE ONLY public.idempotency_key
    ADD CONSTRAINT idempotency_key_pkey PRIMARY KEY (account, mode, key);
ALTER TABLE ONLY public.idempotency_postgres_migration_lock
    ADD CONSTRAINT idempotency_postgres_migration_lock_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.idempotency_postgres_migration
    ADD CONSTRAINT idempotency_postgres_migration_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.ledger_account
    ADD CONSTRAINT ledger_account_pkey PRIMARY KEY (account_id);
ALTER TABLE ONLY public.ledger_call
    ADD CONSTRAINT ledger_call_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.ledger_key
    ADD CONSTRAINT ledger_key_pkey PRIMARY KEY (key_id);
ALTER TABLE ONLY public.ledger_refusal
    ADD CONSTRAINT ledger_refusal_pkey PRIMARY KEY (account_id, mode, hour, key_id, model, endpoint);
ALTER TABLE ONLY public.ledger_replica
    ADD CONSTRAINT ledger_replica_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.ledger_transfer
    ADD CONSTRAINT ledger_transfer_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.ledger_usage
    ADD CONSTRAINT ledger_usage_pkey PRIMARY KEY (account_id, mode, hour, key_id, model, endpoint);
ALTER TABLE ONLY public.mail_outbox
    ADD CONSTRAINT mail_outbox_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.mail_smtp_migration_lock
    ADD CONSTRAINT mail_smtp_migration_lock_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.mail_smtp_migration
    ADD CONSTRAINT mail_smtp_migration_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.queue_dead_letter
    ADD CONSTRAINT queue_dead_letter_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.queue_payload
    ADD CONSTRAINT queue_payload_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.queue_postgres_migration_lock
    ADD CONSTRAINT queue_postgres_migration_lock_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.queue_postgres_migration
    ADD CONSTRAINT queue_postgres_migration_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.retrieval_chunk
    ADD CONSTRAINT retrieval_chunk_pkey PRIMARY KEY (document_no, idx);
ALTER TABLE ONLY public.retrieval_document
    ADD CONSTRAINT retrieval_document_file_id_key UNIQUE (file_id);
ALTER TABLE ONLY public.retrieval_document
    ADD CONSTRAINT retrieval_document_pkey PRIMARY KEY (no);
ALTER TABLE ONLY public.retrieval_tenant
    ADD CONSTRAINT retrieval_tenant_no_key UNIQUE (no);
ALTER TABLE ONLY public.retrieval_tenant
    ADD CONSTRAINT retrieval_tenant_pkey PRIMARY KEY (account, mode);
ALTER TABLE ONLY public.retrieval_vector
    ADD CONSTRAINT retrieval_vector_pkey PRIMARY KEY (document_no, space, idx);
ALTER TABLE ONLY public.signing_key
    ADD CONSTRAINT signing_key_pkey PRIMARY KEY (kid);
ALTER TABLE ONLY public.signing_keys_migration_lock
    ADD CONSTRAINT signing_keys_migration_lock_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.signing_keys_migration
    ADD CONSTRAINT signing_keys_migration_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.webhook_delivery
    ADD CONSTRAINT webhook_delivery_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.webhook_http_migration_lock
    ADD CONSTRAINT webhook_http_migration_lock_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.webhook_http_migration
    ADD CONSTRAINT webhook_http_migration_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.webhook_registration
    ADD CONSTRAINT webhook_registration_pkey PRIMARY KEY (id);
CREATE UNIQUE INDEX accounts_account_first ON public.accounts_account USING btree (is_first) WHERE is_first;
CREATE INDEX accounts_account_list ON public.accounts_account USING btree (created_at, id);
CREATE INDEX accounts_attempt_expires_at ON public.accounts_attempt USING btree (expires_at);
CREATE INDEX accounts_audit_action ON public.accounts_audit USING btree (action, created_at, seq);
CREATE INDEX accounts_audit_actor ON public.accounts_audit USING btree (actor, created_at, seq);
CREATE INDEX accounts_audit_at ON public.accounts_audit USING btree (created_at, seq);
CREATE INDEX accounts_audit_target ON public.accounts_audit USING btree (target, created_at, seq);
CREATE INDEX accounts_key_expires_at ON public.accounts_key USING btree (expires_at) WHERE (expires_at IS NOT NULL);
CREATE INDEX accounts_key_list ON public.accounts_key USING btree (account_id, seq) WHERE (NOT playground);
CREATE INDEX accounts_key_playground ON public.accounts_key USING btree (account_id, seq) WHERE (playground AND (revoked_at IS NULL));
CREATE INDEX accounts_token_expires_at ON public.accounts_token USING btree (expires_at);
CREATE UNIQUE INDEX accounts_token_open ON public.accounts_token USING btree (account_id, purpose) WHERE ((used_at IS NULL) AND (voided_at IS NULL));
CREATE INDEX batches_batch_list ON public.batches_batch USING btree (account, mode, seq);
CREATE INDEX batches_batch_open ON public.batches_batch USING btree (seq) WHERE (ended_at IS NULL);
CREATE INDEX files_file_deleted_at ON public.files_file USING btree (deleted_at) WHERE (deleted_at IS NOT NULL);
CREATE INDEX files_file_expires_at ON public.files_file USING btree (expires_at) WHERE (deleted_at IS NULL);
CREATE INDEX files_file_list ON public.files_file USING btree (account, mode, seq);
CREATE INDEX files_file_unobserved ON public.files_file USING btree (seq) WHERE ((purpose = 'knowledge'::text) AND (NOT observed) AND (deleted_at IS NULL));
CREATE INDEX files_incoming_lease ON public.files_incoming USING btree (lease_until);
CREATE INDEX files_part_upload ON public.files_part USING btree (upload_id);
CREATE INDEX files_trash_due_at ON public.files_trash USING btree (due_at);
CREATE INDEX files_upload_expires_at ON public.files_upload USING btree (expires_at);
CREATE INDEX idempotency_key_expires_at ON public.idempotency_key USING btree (expires_at);
CREATE INDEX ledger_call_children ON public.ledger_call USING btree (parent_id) WHERE (parent_id IS NOT NULL);
CREATE INDEX ledger_call_minute ON public.ledger_call USING btree (key_id, admitted_at, ordinal) WHERE (ordinal IS NOT NULL);
CREATE INDEX ledger_call_parent ON public.ledger_call USING btree (parent_id) WHERE ((state = 'open'::text) AND (parent_id IS NOT NULL));
CREATE INDEX ledger_call_replica ON public.ledger_call USING btree (replica_id) WHERE (state = 'open'::text);
CREATE INDEX ledger_call_usage ON public.ledger_call USING btree (account_id, admitted_at);
CREATE INDEX ledger_transfer_account ON public.ledger_transfer USING btree (account_id, at, id);
CREATE UNIQUE INDEX ledger_transfer_call ON public.ledger_transfer USING btree (call_id) WHERE (call_id IS NOT NULL);
CREATE UNIQUE INDEX ledger_transfer_entry ON public.ledger_transfer USING btree (entry_id) WHERE (entry_id IS NOT NULL);
CREATE INDEX ledger_transfer_grants ON public.ledger_transfer USING btree (account_id, at, id) WHERE (type <> 'charge'::text);
CREATE INDEX mail_outbox_created_at ON public.mail_outbox USING btree (created_at);
CREATE INDEX mail_outbox_due ON public.mail_outbox USING btree (sealed_by, due_at) WHERE (state = 'waiting'::text);
CREATE INDEX queue_dead_letter_died_at ON public.queue_dead_letter USING btree (died_at);
CREATE INDEX queue_payload_due ON public.queue_payload USING btree (job, due_at) WHERE (lease IS NULL);
CREATE UNIQUE INDEX queue_payload_key ON public.queue_payload USING btree (job, key) WHERE (key IS NOT NULL);
CREATE INDEX queue_payload_leased ON public.queue_payload USING btree (job, due_at) WHERE (lease IS NOT NULL);
CREATE INDEX queue_payload_next ON public.queue_payload USING btree (job, priority DESC, due_at, id) WHERE (lease IS NULL);
CREATE INDEX retrieval_chunk_page ON public.retrieval_chunk USING btree (document_no, page, idx) WHERE (page IS NOT NULL);
CREATE INDEX retrieval_chunk_words ON public.retrieval_chunk USING gin (words);
CREATE INDEX retrieval_document_removed ON public.retrieval_document USING btree (removed_at) WHERE (removed_at IS NOT NULL);
CREATE INDEX retrieval_document_tenant ON public.retrieval_document USING btree (account, mode, state);
CREATE INDEX retrieval_document_unfinished ON public.retrieval_document USING btree (no) WHERE (state = ANY (ARRAY['waiting'::text, 'extracting'::text, 'embedding'::text]));
CREATE INDEX webhook_delivery_created ON public.webhook_delivery USING btree (created_at);
CREATE INDEX webhook_delivery_pending ON public.webhook_delivery USING btree (next_attempt_at) WHERE (state = 'pending'::text);
CREATE INDEX webhook_delivery_webhook ON public.webhook_delivery USING btree (webhook_id, seq);
CREATE INDEX webhook_registration_tenant ON public.webhook_registration USING btree (account, mode, seq);
CREATE TRIGGER accounts_audit_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.accounts_audit FOR EACH STATEMENT EXECUTE FUNCTION public.accounts_audit_append_only();
CREATE TRIGGER ledger_transfer_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.ledger_transfer FOR EACH STATEMENT EXECUTE FUNCTION public.ledger_append_only();
ALTER TABLE ONLY public.accounts_key
    ADD CONSTRAINT accounts_key_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.accounts_account(id);
ALTER TABLE ONLY public.accounts_token
    ADD CONSTRAINT accounts_token_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.accounts_account(id);
