-- last_at: time of the newest transfer. The clocks of replicas differ a little; the time of an account
-- never goes back, so its transfers have one order.
CREATE TABLE ledger_account (
  account_id text PRIMARY KEY,
  balance_micros bigint NOT NULL DEFAULT 0,
  held_micros bigint NOT NULL DEFAULT 0,
  last_at timestamptz NOT NULL DEFAULT '-infinity',
  CHECK (held_micros >= 0), CHECK (held_micros <= balance_micros)
) WITH (fillfactor = 50);

-- calls: the number of calls that the rolling minute ever counted, which is the ordinal of the newest.
-- Day and month are those of the newest admission; a call that was admitted in an earlier month and
-- ends now belongs to that month and changes nothing here.
CREATE TABLE ledger_key (
  key_id text PRIMARY KEY,
  calls bigint NOT NULL DEFAULT 0 CHECK (calls >= 0),
  last_at timestamptz NOT NULL DEFAULT '-infinity',
  day date NOT NULL DEFAULT '-infinity',
  day_calls int NOT NULL DEFAULT 0 CHECK (day_calls >= 0),
  open_calls int NOT NULL DEFAULT 0 CHECK (open_calls >= 0),
  month date NOT NULL DEFAULT '-infinity',
  spent_micros bigint NOT NULL DEFAULT 0 CHECK (spent_micros >= 0),
  held_micros bigint NOT NULL DEFAULT 0 CHECK (held_micros >= 0)
) WITH (fillfactor = 50);

CREATE TABLE ledger_replica (
  id uuid PRIMARY KEY,
  started_at timestamptz NOT NULL,
  lease_until timestamptz NOT NULL
);

-- States: open -> settled | voided | refused | expired; expired -> settled (late). `ordinal` is set on
-- the calls that the rolling minute counts. Tokens are those of settled calls, summed over models;
-- `model` is the first of them.
CREATE TABLE ledger_call (
  id uuid PRIMARY KEY,
  account_id text NOT NULL,
  key_id text NOT NULL,
  mode text NOT NULL CHECK (mode IN ('live', 'test')),
  counts text NOT NULL CHECK (counts IN ('all', 'rpm', 'money')),
  state text NOT NULL CHECK (state IN ('open', 'settled', 'voided', 'refused', 'expired')),
  ordinal bigint,
  admitted_at timestamptz NOT NULL,
  settled_at timestamptz,
  replica_id uuid NOT NULL,
  parent_id text,
  endpoint text NOT NULL,
  request_id text NOT NULL,
  model text,
  prices json,
  expires_at timestamptz,
  hold_micros bigint NOT NULL CHECK (hold_micros >= 0),
  cost_micros bigint NOT NULL DEFAULT 0 CHECK (cost_micros BETWEEN 0 AND hold_micros),
  usage jsonb,
  input_tokens bigint NOT NULL DEFAULT 0,
  output_tokens bigint NOT NULL DEFAULT 0,
  http_status int,
  late boolean NOT NULL DEFAULT false,
  CHECK (state <> 'open' OR cost_micros = 0)
);

-- In the order in which ledger_admit asks for the oldest call of the minute: with one column less, a
-- plan made while the minute was empty would sort all calls for as long as the connection lives.
CREATE INDEX ledger_call_minute ON ledger_call (key_id, admitted_at, ordinal)
  WHERE ordinal IS NOT NULL;
CREATE INDEX ledger_call_usage ON ledger_call (account_id, admitted_at);
CREATE INDEX ledger_call_replica ON ledger_call (replica_id) WHERE state = 'open';
CREATE INDEX ledger_call_parent ON ledger_call (parent_id)
  WHERE state = 'open' AND parent_id IS NOT NULL;

-- Both legs are in one row. The operator's accounts start with @ and have no balance row: all customers
-- would wait for its lock.
CREATE TABLE ledger_transfer (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id text NOT NULL,
  debit_account text NOT NULL,
  credit_account text NOT NULL,
  amount_micros bigint NOT NULL CHECK (amount_micros > 0),
  balance_micros bigint NOT NULL CHECK (balance_micros >= 0),
  type text NOT NULL CHECK (type IN ('grant', 'charge', 'adjustment')),
  call_id uuid,
  entry_id text,
  reason text,
  at timestamptz NOT NULL,
  CHECK (debit_account <> credit_account AND account_id IN (debit_account, credit_account)),
  CHECK ((call_id IS NULL) <> (entry_id IS NULL))
);

CREATE INDEX ledger_transfer_account ON ledger_transfer (account_id, at, id);
-- few rows among many charges
CREATE INDEX ledger_transfer_grants ON ledger_transfer (account_id, at, id) WHERE type <> 'charge';
CREATE UNIQUE INDEX ledger_transfer_call ON ledger_transfer (call_id) WHERE call_id IS NOT NULL;
CREATE UNIQUE INDEX ledger_transfer_entry ON ledger_transfer (entry_id) WHERE entry_id IS NOT NULL;

CREATE FUNCTION ledger_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'ledger_transfer is append-only';
END
$$;
CREATE TRIGGER ledger_transfer_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_transfer
  FOR EACH STATEMENT EXECUTE FUNCTION ledger_append_only();

-- Sums over the calls that ended, by the hour in which they were admitted; `model` is '' for none.
CREATE TABLE ledger_usage (
  account_id text NOT NULL,
  mode text NOT NULL,
  hour timestamptz NOT NULL,
  key_id text NOT NULL,
  model text NOT NULL,
  endpoint text NOT NULL,
  requests bigint NOT NULL,
  errors bigint NOT NULL,
  input_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL,
  cost_micros bigint NOT NULL,
  PRIMARY KEY (account_id, mode, hour, key_id, model, endpoint)
) WITH (fillfactor = 70);
