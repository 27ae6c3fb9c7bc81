-- Takes one call out of the rolling minute: later calls move up, so that ordinals stay without gaps. A
-- call that left every window long ago only loses its ordinal.
CREATE OR REPLACE FUNCTION ledger_uncount(given ledger_call, clock timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
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

-- From the newest to the oldest, so that an ordinal is still right when its turn comes.
CREATE OR REPLACE FUNCTION ledger_uncount_all(items ledger_settlement[], clock timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
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
