-- Takes the calls that are refused out of the rolling minutes of their keys: later calls move up, once
-- for all of them, so that ordinals stay without gaps. Calls that left every window long ago only lose
-- their ordinals.
CREATE OR REPLACE FUNCTION ledger_uncount_all(items ledger_settlement[], clock timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  given record; -- the calls of one key
BEGIN
  FOR given IN
    SELECT c.key_id, array_agg(c.id) AS ids, min(c.admitted_at) FILTER (WHERE n.is_new) AS since,
        array_agg(c.ordinal) FILTER (WHERE n.is_new) AS ordinals
      FROM unnest(items) x JOIN ledger_call c ON c.id = coalesce(x.spare_id, x.id)
        -- more than the window, as the clocks of replicas differ
        CROSS JOIN LATERAL (SELECT c.admitted_at > clock - interval '2 minutes' AS is_new) n
      WHERE x.outcome = 'refused' AND c.state = 'open' AND c.ordinal IS NOT NULL
      GROUP BY c.key_id ORDER BY c.key_id
  LOOP
    UPDATE ledger_call SET ordinal = NULL WHERE id = ANY(given.ids);
    CONTINUE WHEN given.since IS NULL;
    UPDATE ledger_call c
      SET ordinal = c.ordinal - (SELECT count(*) FROM unnest(given.ordinals) o WHERE o < c.ordinal)
      WHERE c.key_id = given.key_id AND c.admitted_at >= given.since
        AND c.ordinal > (SELECT min(o) FROM unnest(given.ordinals) o);
    UPDATE ledger_key SET calls = calls - cardinality(given.ordinals) WHERE key_id = given.key_id;
  END LOOP;
END
$$;
DROP FUNCTION IF EXISTS ledger_uncount(ledger_call, timestamptz);
