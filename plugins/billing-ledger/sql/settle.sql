-- The only function that ends calls. Returns the number of calls that were open. The planner settings
-- are those of ledger_admit, for the same reason.
CREATE OR REPLACE FUNCTION ledger_settle(items json, clock timestamptz) RETURNS bigint
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
  ended ledger_settlement[];
  accounts text[];
  has_refused boolean;
  closed bigint;
BEGIN
  SELECT array_agg(x), array_agg(c.account_id), bool_or(x.outcome = 'refused')
    INTO ended, accounts, has_refused
    FROM json_populate_recordset(NULL::ledger_settlement, items) x
    LEFT JOIN ledger_call c ON c.id = coalesce(x.spare_id, x.id);
  -- each has a row since its call was admitted; in the order of ledger_lock
  PERFORM FROM ledger_account WHERE account_id = ANY(accounts) ORDER BY account_id FOR UPDATE;
  -- rare cases are left out: starting their joins takes longer than settling a call
  IF has_refused THEN PERFORM ledger_uncount_all(ended, clock); END IF;
  closed := ledger_close(ended, clock);
  IF has_refused THEN
    DELETE FROM ledger_call c USING unnest(ended) x
      WHERE c.id = x.id AND c.counts = 'spare' AND c.state = 'refused';
  END IF;
  IF closed < cardinality(ended) THEN PERFORM ledger_close_late(ended, clock); END IF;
  RETURN closed;
END
$$;
