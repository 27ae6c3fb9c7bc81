import { Effect } from "effect"
import { sql } from "kysely"
import type { Database, Micros, PortError } from "../../core/index.ts"

export type EntryType = "grant" | "charge" | "adjustment"

/** A row of `ledger_transfer`, seen from its account. */
export interface Entry {
  readonly id: bigint
  readonly type: EntryType
  /** Negative when money left the account. */
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
  readonly after?: EntryPosition | undefined
  readonly limit: number
}

/** The sort key of an entry within its account: times never go back there, and ids break ties. */
export interface EntryPosition {
  readonly at: Date
  readonly id: bigint
}

const typed = {
  grant: sql`AND type <> 'charge' AND type = 'grant'`,
  adjustment: sql`AND type <> 'charge' AND type = 'adjustment'`,
  charge: sql`AND type = 'charge'`,
}

/** Newest first. */
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
  // the page is selected first, so that calls are joined to its rows only
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

/** Returns undefined when the account has no such entry. */
export const findPosition = (
  database: Database,
  account: string,
  id: bigint,
): Effect.Effect<EntryPosition | undefined, PortError> =>
  Effect.map(
    database.run(() =>
      sql<EntryPosition>`SELECT at, id FROM ledger_transfer WHERE id = ${String(id)}::bigint AND account_id = ${account}`.execute(
        database.queries(),
      ),
    ),
    ({ rows }) => rows[0],
  )
