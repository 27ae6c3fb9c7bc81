import { Effect } from "effect"
import { sql } from "kysely"
import type { Database, Micros, PortError } from "../../core/index.ts"

export type EntryType = "grant" | "charge" | "adjustment"

/** One row of the ledger, as its account sees it. */
export interface Entry {
  readonly id: bigint
  readonly type: EntryType
  /** Below zero when money left the account. */
  readonly amountMicros: Micros
  readonly balanceMicros: Micros
  readonly at: Date
  readonly reason: string | null
  readonly callId: string | null
  readonly requestId: string | null
  readonly endpoint: string | null
  readonly model: string | null
}

export interface EntryQuery {
  readonly account: string
  readonly type?: EntryType | undefined
  readonly fromMs?: number | undefined
  readonly toMs?: number | undefined
  /** Only entries older than this one. */
  readonly after?: Place | undefined
  readonly limit: number
}

/** Where an entry stands in the order of its account: times never go back there, and ids tell those of one time apart. */
export interface Place {
  readonly at: Date
  readonly id: bigint
}

const typed = {
  grant: sql`AND type <> 'charge' AND type = 'grant'`,
  adjustment: sql`AND type <> 'charge' AND type = 'adjustment'`,
  charge: sql`AND type = 'charge'`,
}

/** The newest first. */
export const readEntries = (
  database: Database,
  { account, type, fromMs, toMs, after, limit }: EntryQuery,
): Effect.Effect<readonly Entry[], PortError> => {
  const conditions = [
    ...(type ? [typed[type]] : []),
    ...(fromMs === undefined ? [] : [sql`AND at >= ${new Date(fromMs)}`]),
    ...(toMs === undefined ? [] : [sql`AND at < ${new Date(toMs)}`]),
    ...(after ? [sql`AND (at, id) < (${after.at}, ${String(after.id)}::bigint)`] : []),
  ]
  // the page first, so that calls are looked up for its rows only
  const page = sql`SELECT * FROM ledger_transfer WHERE account_id = ${account} ${conditions.length > 0 ? sql.join(conditions, sql` `) : sql``} ORDER BY at DESC, id DESC LIMIT ${limit}`
  const query = sql<Entry>`
    SELECT t.id, t.type, CASE WHEN t.credit_account = t.account_id THEN t.amount_micros ELSE -t.amount_micros END AS "amountMicros", t.balance_micros AS "balanceMicros",
      t.at, t.reason, t.call_id AS "callId", c.request_id AS "requestId", c.endpoint, c.model
    FROM (${page}) t LEFT JOIN ledger_call c ON c.id = t.call_id ORDER BY t.at DESC, t.id DESC`
  return Effect.map(
    database.run(() => query.execute(database.queries())),
    ({ rows }) => rows,
  )
}

/** Undefined when the account has no such entry. */
export const findPlace = (
  database: Database,
  account: string,
  id: bigint,
): Effect.Effect<Place | undefined, PortError> =>
  Effect.map(
    database.run(() =>
      sql<Place>`SELECT at, id FROM ledger_transfer WHERE id = ${String(id)}::bigint AND account_id = ${account}`.execute(
        database.queries(),
      ),
    ),
    ({ rows }) => rows[0],
  )
