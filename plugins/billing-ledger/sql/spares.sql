-- Spare calls: open calls of a busy key, each with its ordinal, slot and hold, that no request uses yet.
-- Their `counts` is 'spare'. A settlement that names one in `spare_id` gives its row to the call: from
-- then on it has that call's id and facts. One that is given back (`refused`) was never a call, and its
-- row goes; that of a dead server expires, and counts toward the minute and the day as other calls do.
CREATE FUNCTION ledger_spare_life() RETURNS interval LANGUAGE sql IMMUTABLE AS $$
  SELECT interval '250 ms'
$$;

-- when the newest spare call of the key was admitted
ALTER TABLE ledger_key ADD COLUMN spared_at timestamptz;

-- spare_micros: what the spare call holds; hold_micros: what its call would have held.
ALTER TYPE ledger_settlement ADD ATTRIBUTE spare_id uuid, ADD ATTRIBUTE spare_micros bigint,
  ADD ATTRIBUTE hold_micros bigint, ADD ATTRIBUTE endpoint text, ADD ATTRIBUTE request_id text,
  ADD ATTRIBUTE model text, ADD ATTRIBUTE prices json;
