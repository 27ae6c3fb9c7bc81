-- The elements of the JSON arrays that ledger_admit and ledger_settle take, and what ledger_admit
-- returns. Functions read settlements as an array of this type, not as JSON throughout: JSON is then
-- parsed once, and a plan made while there were no calls expects few items and finds each by its id.

CREATE TYPE ledger_request AS (place int, id uuid, account_id text, key_id text, mode text,
  counts text, hold_micros bigint, endpoint text, request_id text, parent_id text, model text,
  prices json, expires_at timestamptz, rpm bigint, rpd bigint, slots bigint, cap_micros bigint);

-- hold_us: how long the statement took to write slots and holds, in microseconds, without the checks.
CREATE TYPE ledger_verdict AS (place int, refusal text, remaining bigint, reset_ms bigint,
  retry_after_ms bigint, hold_us bigint);

CREATE TYPE ledger_settlement AS (id uuid, outcome text, cost_micros bigint, usage jsonb,
  input_tokens bigint, output_tokens bigint, http_status int);
