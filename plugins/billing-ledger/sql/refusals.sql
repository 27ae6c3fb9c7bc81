-- Requests of known keys that were refused before their admission, by the hour: no calls, so they are
-- in no proof of the ledger and have no ids. `model` is '' where the request named none of ours.
CREATE TABLE ledger_refusal (
  account_id text NOT NULL,
  mode text NOT NULL CHECK (mode IN ('live', 'test')),
  hour timestamptz NOT NULL,
  key_id text NOT NULL,
  model text NOT NULL,
  endpoint text NOT NULL,
  requests bigint NOT NULL CHECK (requests > 0),
  PRIMARY KEY (account_id, mode, hour, key_id, model, endpoint)
);
