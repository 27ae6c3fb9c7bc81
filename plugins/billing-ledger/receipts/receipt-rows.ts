import { Effect } from "effect"
import { sql } from "kysely"
import type {
  Database,
  Json,
  Micros,
  PortError,
  PriceTag,
  Tenant,
  UsageByModel,
} from "../../../core/index.ts"

/** A row of `ledger_call`. */
export interface CallRecord {
  readonly id: string
  readonly account: string
  readonly keyId: string
  readonly mode: Tenant["mode"]
  readonly requestId: string
  readonly endpoint: string
  readonly model: string | null
  readonly state: "open" | "settled" | "voided" | "refused" | "expired"
  readonly httpStatus: number | null
  readonly admittedAt: Date
  readonly settledAt: Date | null
  readonly usage: UsageByModel | null
  readonly prices: PriceTag | null
  readonly holdMicros: Micros
  readonly costMicros: Micros
  readonly evidence: Json
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/**
 * Finds a call of this account and, if given, of this mode. Dry runs (`counts` is rpm) are not
 * calls.
 */
export const findCall = (
  database: Database,
  id: string,
  account: string,
  mode?: Tenant["mode"],
): Effect.Effect<CallRecord | undefined, PortError> => {
  if (!uuid.test(id)) return Effect.succeed(undefined)
  const query = sql<CallRecord>`
    SELECT id, account_id AS account, key_id AS "keyId", mode, request_id AS "requestId", endpoint, model, state, http_status AS "httpStatus", admitted_at AS "admittedAt",
      settled_at AS "settledAt", usage, prices, hold_micros AS "holdMicros", cost_micros AS "costMicros", evidence
    FROM ledger_call WHERE id = ${id} AND account_id = ${account} AND counts IN ('all', 'money') ${mode === undefined ? sql`` : sql`AND mode = ${mode}`}`
  return Effect.map(
    database.run(() => query.execute(database.queries())),
    ({ rows }) => rows[0],
  )
}
