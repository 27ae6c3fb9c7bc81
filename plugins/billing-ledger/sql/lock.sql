-- Locks the rows of accounts, creating those that are missing: an account without a row has balance 0,
-- but only a row can be locked. The lock of an account guards its keys, too. Every code path locks
-- accounts first, in the order of their ids. One SELECT for each: a plan for a whole list may scan the
-- table.
CREATE OR REPLACE FUNCTION ledger_lock(accounts text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  account text;
BEGIN
  FOR account IN SELECT DISTINCT x FROM unnest(accounts) x ORDER BY x LOOP
    LOOP
      PERFORM 1 FROM ledger_account WHERE account_id = account FOR UPDATE;
      EXIT WHEN FOUND;
      INSERT INTO ledger_account (account_id) VALUES (account) ON CONFLICT DO NOTHING;
    END LOOP;
  END LOOP;
END
$$;
