import { Effect } from "effect"
import { sql } from "kysely"
import type { Clock, Database, PortError, RefusedRequest } from "../../core/index.ts"

const hourMs = 3_600_000

interface Row {
  readonly account_id: string
  readonly mode: string
  readonly hour: string
  readonly key_id: string
  readonly model: string
  readonly endpoint: string
  requests: number
}

export interface RefusedRequests {
  /** Counts in memory: a client that sends nonsense costs no statement. */
  note(request: Pick<RefusedRequest, "caller" | "endpoint" | "model">): void
  /** Writes the counts down, in one statement; what can't be written is kept. */
  readonly flush: Effect.Effect<void, PortError>
}

/** At most `maxRows` counts wait; beyond them nothing new is counted until they are written. */
export const makeRefusedRequests = (
  database: Database,
  clock: Clock,
  maxRows: number,
): RefusedRequests => {
  const waiting = new Map<string, Row>()
  const add = (row: Row) => {
    const { requests, ...named } = row
    const key = JSON.stringify(Object.values(named))
    const known = waiting.get(key)
    if (known) known.requests += requests
    else if (waiting.size < maxRows) waiting.set(key, row)
  }
  const write = (rows: readonly Row[]) =>
    database.run(() =>
      sql`
        INSERT INTO ledger_refusal AS r SELECT * FROM json_populate_recordset(NULL::ledger_refusal, ${JSON.stringify(rows)}::json)
        ON CONFLICT (account_id, mode, hour, key_id, model, endpoint) DO UPDATE
          SET requests = r.requests + excluded.requests`.execute(database.queries()),
    )
  return {
    note: ({ caller, endpoint, model = "" }) => {
      const { account, mode } = caller.tenant
      const hour = new Date(Math.floor(clock.nowMs() / hourMs) * hourMs).toISOString()
      const key_id = caller.keyId ?? `session:${account}`
      add({ account_id: account, mode, hour, key_id, model, endpoint, requests: 1 })
    },
    flush: Effect.suspend(() => {
      if (waiting.size === 0) return Effect.void
      const rows = [...waiting.values()]
      waiting.clear()
      return write(rows).pipe(
        Effect.asVoid,
        Effect.tapError(() => Effect.sync(() => rows.forEach(add))),
        Effect.uninterruptible,
      )
    }),
  }
}
