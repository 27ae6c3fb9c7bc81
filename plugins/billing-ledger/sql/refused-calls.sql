-- Some of the requests that were refused, for the call log: not all, so nothing is summed over them.
CREATE TABLE ledger_refused_call (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  account_id text NOT NULL,
  key_id text NOT NULL,
  mode text NOT NULL CHECK (mode IN ('live', 'test')),
  at timestamptz NOT NULL,
  request_id text NOT NULL,
  endpoint text NOT NULL,
  model text,
  http_status int NOT NULL,
  code text NOT NULL,
  message text NOT NULL
);
CREATE INDEX ledger_refused_call_account ON ledger_refused_call (account_id, at);
CREATE INDEX ledger_refused_call_at ON ledger_refused_call (at);
