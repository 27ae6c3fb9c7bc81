import { type RawBuilder, sql } from "kysely"
import { callInvariants } from "../proof/calls.ts"
import { keyInvariants } from "../proof/keys.ts"
import { transferInvariants } from "../proof/transfers.ts"

const context = { now: new Date(0), leaseMs: 0, sweepMs: 0 }
const [twoLegs, zeroSum, balances, chain, covered, charges, appendOnly] = transferInvariants.map(
  ({ says }) => says,
)
const [held, withinHold, costs, tokens, hours, overdue] = callInvariants(context).map(
  ({ says }) => says,
)
const [slots, months, days, minutes] = keyInvariants(context).map(({ says }) => says)

const oneCharge = sql`(SELECT min(id) FROM ledger_transfer WHERE type = 'charge')`
const oneCall = sql`(SELECT min(id::text)::uuid FROM ledger_call WHERE state = 'settled')`
const openCall = sql`(SELECT id FROM ledger_call WHERE state = 'open')`

/** What is broken -> which invariants must say so, and no other; and what the fault names. */
export const mutations: Readonly<
  Record<string, readonly [readonly RawBuilder<unknown>[], readonly (string | undefined)[], RegExp]>
> = {
  "a transfer between equal accounts": [
    [sql`UPDATE ledger_transfer SET credit_account = debit_account WHERE id = ${oneCharge}`],
    [twoLegs, balances, chain],
    /transfer 2 /,
  ],
  "a transfer of nothing": [
    [
      sql`INSERT INTO ledger_transfer (account_id, debit_account, credit_account, amount_micros, balance_micros, type, entry_id, at) SELECT 'acct_1', '@grants', 'acct_1', 0, balance_micros, 'grant', 'zero', last_at FROM ledger_account WHERE account_id = 'acct_1'`,
    ],
    [twoLegs],
    /transfer 9 .* 0 micros/,
  ],
  "a charge that pays the customer": [
    [
      sql`UPDATE ledger_transfer SET debit_account = '@grants', credit_account = account_id WHERE type = 'adjustment' AND account_id = 'acct_2'`,
    ],
    [twoLegs, balances, chain],
    /transfer 7 /,
  ],
  "a leg of an account that there is not": [
    [sql`UPDATE ledger_transfer SET credit_account = '@pocket' WHERE id = ${oneCharge}`],
    [zeroSum],
    /transfer 2 has a leg of @pocket/,
  ],
  "a balance that was raised": [
    [
      sql`UPDATE ledger_account SET balance_micros = balance_micros + 1 WHERE account_id = 'acct_1'`,
    ],
    [balances],
    /account acct_1/,
  ],
  "an account that vanished": [
    [sql`DELETE FROM ledger_account WHERE account_id = 'acct_2'`],
    [zeroSum, balances],
    /acct_2/,
  ],
  "a grant that was made up": [
    [
      sql`INSERT INTO ledger_transfer (account_id, debit_account, credit_account, amount_micros, balance_micros, type, entry_id, at) SELECT 'acct_1', '@grants', 'acct_1', 5, balance_micros + 5, 'grant', 'made-up', last_at FROM ledger_account WHERE account_id = 'acct_1'`,
    ],
    [balances],
    /account acct_1/,
  ],
  "a running balance that was altered": [
    [sql`UPDATE ledger_transfer SET balance_micros = balance_micros + 1 WHERE id = 1`],
    [chain],
    /transfer 1 /,
  ],
  "a row that was back-dated": [
    [sql`UPDATE ledger_transfer SET at = at - interval '1 day' WHERE id = 3`],
    [chain],
    /transfer 3 /,
  ],
  "a balance below its hold": [
    [sql`UPDATE ledger_account SET held_micros = balance_micros + 1 WHERE account_id = 'acct_2'`],
    [covered, held],
    /account acct_2/,
  ],
  "a charge that was deleted": [
    [
      sql`DELETE FROM ledger_transfer WHERE id = (SELECT max(id) FROM ledger_transfer WHERE account_id = 'acct_2')`,
    ],
    [balances, charges],
    /charges: 0/,
  ],
  "a charge for another call": [
    [sql`UPDATE ledger_transfer SET call_id = gen_random_uuid() WHERE id = ${oneCharge}`],
    [charges],
    /which owes nothing/,
  ],
  "a charge to another account's call": [
    [
      sql`UPDATE ledger_call SET account_id = 'acct_2' WHERE id = (SELECT call_id FROM ledger_transfer WHERE id = ${oneCharge})`,
    ],
    [charges, hours],
    /call .* of account acct_2/,
  ],
  "a trigger that is off": [[], [appendOnly], /ledger_transfer_append_only/],
  "a hold that was lowered": [
    [sql`UPDATE ledger_account SET held_micros = held_micros - 1 WHERE account_id = 'acct_1'`],
    [held],
    /account acct_1: held/,
  ],
  "a cost above the hold": [
    [sql`UPDATE ledger_call SET hold_micros = cost_micros - 1 WHERE id = ${oneCall}`],
    [withinHold, costs],
    /call /,
  ],
  "usage that was altered": [
    [sql`UPDATE ledger_call SET usage = jsonb_set(usage, '{m,images}', '1') WHERE id = ${oneCall}`],
    [costs],
    /call .* its usage comes to/,
  ],
  "prices that were altered": [
    [
      sql`UPDATE ledger_call SET prices = jsonb_set(prices::jsonb, '{models,m,input}', '"1700"')::json WHERE id = ${oneCall}`,
    ],
    [costs],
    /call /,
  ],
  "tokens that were altered": [
    [sql`UPDATE ledger_call SET input_tokens = 11 WHERE id = ${oneCall}`],
    [tokens, hours],
    /call .*: 11 and 3 tokens/,
  ],
  "an hour that was altered": [
    [sql`UPDATE ledger_usage SET errors = errors + 1 WHERE account_id = 'acct_2'`],
    [hours],
    /hour .* account acct_2/,
  ],
  "an hour that was deleted": [
    [sql`DELETE FROM ledger_usage WHERE account_id = 'acct_2'`],
    [hours],
    /acct_2/,
  ],
  "an hour without calls": [
    [
      sql`INSERT INTO ledger_usage VALUES ('acct_1', 'live', '2020-01-01', 'k', '', 'e', 1, 0, 0, 0, 0)`,
    ],
    [hours],
    /2020/,
  ],
  "a slot that leaked": [
    [sql`UPDATE ledger_key SET open_calls = open_calls + 1 WHERE key_id = 'acct_2-key'`],
    [slots],
    /key acct_2-key: 1 slots, 0/,
  ],
  "a month's spend that was forgotten": [
    [sql`UPDATE ledger_key SET spent_micros = 0 WHERE key_id = 'acct_2-key'`],
    [months],
    /key acct_2-key/,
  ],
  "a month's hold that leaked": [
    [sql`UPDATE ledger_key SET held_micros = held_micros + 1 WHERE key_id = 'acct_2-key'`],
    [months],
    /key acct_2-key/,
  ],
  "a day that was miscounted": [
    [sql`UPDATE ledger_key SET day_calls = 1 WHERE key_id = 'acct_2-key'`],
    [days],
    /key acct_2-key/,
  ],
  "a gap in the minute": [
    [sql`UPDATE ledger_call SET ordinal = NULL WHERE id = ${openCall}`],
    [minutes],
    /acct_1-key has ordinal 2, next is 4/,
  ],
  "an ordinal twice": [
    [sql`UPDATE ledger_call SET ordinal = 2 WHERE id = ${openCall}`],
    [minutes],
    /ordinal 2, next is 2/,
  ],
  "a call open beyond its time": [
    [
      sql`UPDATE ledger_call SET expires_at = admitted_at - interval '21 s' WHERE id = ${openCall}`,
      sql`UPDATE ledger_replica SET started_at = started_at - interval '1 hour'`,
    ],
    [overdue],
    /call .* is open since/,
  ],
  "a call whose replica is long dead": [
    [
      sql`UPDATE ledger_call SET replica_id = gen_random_uuid(), admitted_at = admitted_at - interval '51 s' WHERE id = ${openCall}`,
      sql`UPDATE ledger_replica SET started_at = started_at - interval '1 hour'`,
    ],
    [overdue, minutes],
    /call .* is open since/,
  ],
}
