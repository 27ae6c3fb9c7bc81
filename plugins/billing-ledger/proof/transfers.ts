import { sql } from "kysely"
import { countOf, type Invariant, within } from "./invariant.ts"

const signed = sql`CASE WHEN credit_account = account_id THEN amount_micros ELSE -amount_micros END`

const legs = sql`(SELECT id, debit_account AS account, -amount_micros AS micros FROM ledger_transfer UNION ALL SELECT id, credit_account, amount_micros FROM ledger_transfer) leg`

const twoLegs: Invariant = {
  says: "each transfer moves a positive amount between two different accounts, into or out of the customer's, for a call or not, as its type says",
  rows: countOf(sql`ledger_transfer`),
  breaches: sql`
    SELECT format('transfer %s (%s): %s micros from %s to %s, of account %s', id, type, amount_micros, debit_account, credit_account, account_id) AS detail FROM ledger_transfer
    WHERE (amount_micros > 0 AND debit_account <> credit_account AND account_id = CASE type WHEN 'grant' THEN credit_account ELSE debit_account END
      AND (type = 'charge') = (call_id IS NOT NULL)) IS NOT TRUE ORDER BY id`,
}

const zeroSum: Invariant = {
  says: "the legs of all accounts, the operator's included, sum to zero",
  rows: countOf(legs),
  breaches: sql`
    WITH known AS (SELECT leg.*, account IN ('@grants', '@revenue') OR a.account_id IS NOT NULL AS is_known FROM ${legs} LEFT JOIN ledger_account a ON a.account_id = leg.account)
    SELECT format('the legs of all accounts come to %s micros', sum(micros)) AS detail FROM known WHERE is_known HAVING sum(micros) <> 0
    UNION ALL SELECT format('transfer %s has a leg of %s, which is no account', id, account) FROM known WHERE NOT is_known`,
}

const balances: Invariant = {
  says: "each account's balance is the sum of its legs",
  rows: countOf(sql`ledger_account`),
  breaches: sql`
    SELECT format('account %s: balance %s, its legs come to %s', coalesce(a.account_id, s.account), coalesce(a.balance_micros, 0), coalesce(s.micros, 0)) AS detail
    FROM ledger_account a FULL JOIN (SELECT account, sum(micros) AS micros FROM ${legs} WHERE account NOT LIKE '@%' GROUP BY account) s ON s.account = a.account_id
    WHERE coalesce(a.balance_micros, 0) <> coalesce(s.micros, 0) ORDER BY 1`,
}

const chain: Invariant = {
  says: "the running balances of each account chain, row by row, and its time never goes back",
  rows: countOf(sql`ledger_transfer`),
  breaches: sql`
    SELECT format('transfer %s of account %s: %s after %s, and %s micros', id, account_id, balance_micros, coalesce(before_micros, 0), signed_micros) AS detail FROM (
      SELECT id, account_id, balance_micros, at, ${signed} AS signed_micros, lag(balance_micros) OVER account AS before_micros, lag(at) OVER account AS before_at
      FROM ledger_transfer WINDOW account AS (PARTITION BY account_id ORDER BY id)) t
    WHERE balance_micros <> coalesce(before_micros, 0) + signed_micros OR at < before_at ORDER BY id`,
}

const covered: Invariant = {
  says: "no balance is below zero or below what is held, and no hold is below zero",
  rows: countOf(sql`ledger_account`),
  breaches: sql`
    SELECT format('account %s: balance %s, held %s', account_id, balance_micros, held_micros) AS detail FROM ledger_account
    WHERE (balance_micros >= 0 AND held_micros BETWEEN 0 AND balance_micros) IS NOT TRUE ORDER BY account_id`,
}

const charges: Invariant = {
  says: "each call that cost something has exactly one charge, of the same amount and account, and each charge has such a call",
  rows: countOf(sql`ledger_transfer WHERE type = 'charge'`),
  breaches: (slice) => sql`
    SELECT CASE WHEN c.id IS NULL THEN format('transfer %s charges call %s, which owes nothing', t.first_id, t.call_id)
      ELSE format('call %s of account %s cost %s; its charges: %s, %s micros, of account %s', c.id, c.account_id, c.cost_micros, coalesce(t.n, 0), coalesce(t.micros, 0), t.account_id) END AS detail
    FROM (SELECT id, account_id, cost_micros FROM ledger_call WHERE state = 'settled' AND cost_micros > 0 AND ${within("id", slice)}) c
      FULL JOIN (SELECT call_id, count(*) AS n, sum(amount_micros) AS micros, min(account_id) AS account_id, min(id) AS first_id
        FROM ledger_transfer WHERE type = 'charge' AND ${within("call_id", slice)} GROUP BY call_id) t ON t.call_id = c.id
    WHERE (t.n = 1 AND t.micros = c.cost_micros AND t.account_id = c.account_id) IS NOT TRUE ORDER BY 1`,
}

/**
 * The name of a trigger proves nothing: it must be enabled for all three statements, and its
 * function must refuse.
 */
const appendOnly: Invariant = {
  says: "the ledger can only grow: its trigger is there, switched on, and refuses",
  rows: countOf(sql`pg_trigger WHERE tgrelid = 'ledger_transfer'::regclass AND NOT tgisinternal`),
  breaches: sql`
    SELECT 'the trigger ledger_transfer_append_only is missing, switched off or altered' AS detail WHERE NOT EXISTS (
      SELECT 1 FROM pg_trigger g JOIN pg_proc p ON p.oid = g.tgfoid
      WHERE g.tgrelid = 'ledger_transfer'::regclass AND g.tgname = 'ledger_transfer_append_only' AND g.tgenabled IN ('O', 'A') AND g.tgqual IS NULL
        AND g.tgtype & 58 = 58 AND g.tgtype & 1 = 0 AND btrim(p.prosrc, E' \n') = E'BEGIN\n  RAISE EXCEPTION ''ledger_transfer is append-only'';\nEND')`,
}

export const transferInvariants: readonly Invariant[] = [
  twoLegs,
  zeroSum,
  balances,
  chain,
  covered,
  charges,
  appendOnly,
]
