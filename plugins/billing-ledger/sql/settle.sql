-- The only function that ends calls. Returns the number of calls that were open. The planner settings
-- are those of ledger_admit, for the same reason.
CREATE OR REPLACE FUNCTION ledger_settle(items json, clock timestamptz) RETURNS bigint
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
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
