-- Adds to a balance, or takes from it, once for each entry. Returns done, repeated or too_low.
CREATE OR REPLACE FUNCTION ledger_adjust(entry text, account text, amount bigint, why text,
  clock timestamptz) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  balance ledger_account;
BEGIN
  PERFORM ledger_lock(ARRAY[account]);
  IF EXISTS (SELECT 1 FROM ledger_transfer WHERE entry_id = entry) THEN RETURN 'repeated'; END IF;
  SELECT * INTO balance FROM ledger_account WHERE account_id = account;
  IF amount < 0 AND balance.balance_micros - balance.held_micros + amount < 0 THEN
    RETURN 'too_low';
  END IF;
  IF amount = 0 THEN RETURN 'done'; END IF;
  UPDATE ledger_account
    SET balance_micros = balance_micros + amount, last_at = greatest(last_at, clock)
    WHERE account_id = account;
  INSERT INTO ledger_transfer (account_id, debit_account, credit_account, amount_micros,
      balance_micros, type, entry_id, reason, at)
    VALUES (account, CASE WHEN amount > 0 THEN '@grants' ELSE account END,
      CASE WHEN amount > 0 THEN account ELSE '@grants' END, abs(amount),
      balance.balance_micros + amount, CASE WHEN amount > 0 THEN 'grant' ELSE 'adjustment' END,
      entry, why, greatest(balance.last_at, clock));
  RETURN 'done';
END
$$;
