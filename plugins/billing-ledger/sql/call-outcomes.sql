-- How long the stages of a call took, and why it failed, for the call log; null in calls that ended
-- before this. `total_ms` and `first_ms` (to the first token) count from the request's begin. A code
-- is one of docs/errors.md, or `expired`, or `client_closed`.
ALTER TYPE ledger_settlement ADD ATTRIBUTE stages json, ADD ATTRIBUTE total_ms real,
  ADD ATTRIBUTE first_ms real, ADD ATTRIBUTE error_code text, ADD ATTRIBUTE error_message text;

ALTER TABLE ledger_call ADD COLUMN stages json, ADD COLUMN total_ms real, ADD COLUMN first_ms real,
  ADD COLUMN error_code text, ADD COLUMN error_message text;

-- Durations in steps of a fifth: bucket n begins at 1.2 ^ n ms, so its middle is 10 % off at most.
CREATE FUNCTION ledger_bucket(ms double precision) RETURNS smallint LANGUAGE sql IMMUTABLE AS $$
  SELECT floor(ln(CASE WHEN ms < 0.1 THEN 0.1 ELSE ms END) / ln(1.2::double precision))::smallint
$$;

-- How many calls of a day took so long, whole (`totals`) and to the first token (`firsts`): those that
-- used a model and went well. Lines of batches wait by design, so they are not in it.
CREATE TABLE ledger_latency (
  account_id text NOT NULL,
  mode text NOT NULL,
  day date NOT NULL,
  model text NOT NULL,
  bucket smallint NOT NULL,
  totals bigint NOT NULL,
  firsts bigint NOT NULL,
  PRIMARY KEY (account_id, mode, day, model, bucket)
) WITH (fillfactor = 70);

CREATE INDEX ledger_call_error ON ledger_call (account_id, admitted_at)
  WHERE error_code IS NOT NULL;

-- Refused requests of one hour by code, those of limits, too.
CREATE TABLE ledger_refusal_code (
  account_id text NOT NULL,
  mode text NOT NULL CHECK (mode IN ('live', 'test')),
  hour timestamptz NOT NULL,
  key_id text NOT NULL,
  model text NOT NULL,
  endpoint text NOT NULL,
  code text NOT NULL,
  requests bigint NOT NULL CHECK (requests > 0),
  PRIMARY KEY (account_id, mode, hour, key_id, model, endpoint, code)
);
CREATE INDEX ledger_refused_call_code ON ledger_refused_call (account_id, code, at);
