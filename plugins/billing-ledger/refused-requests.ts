import { Effect } from "effect"
import { sql } from "kysely"
import type {
  AdmitRequest,
  Clock,
  Database,
  PortError,
  Refusal,
  RefusedRequest,
} from "../../core/index.ts"
import {
  makeRefusedCalls,
  type RefusedCall,
  refusedByLimit,
  refusedRequest,
} from "./refused-calls.ts"

const hourMs = 3_600_000
const maxRefusedRows = 10_000

export interface RefusedRequests {
  /** Counts a request that was refused before it was a call. In memory: nonsense costs no statement. */
  note(refused: RefusedCall): void
  /** Counts one that a limit or the balance refused: by its code only, it is in no sum of usage. */
  noteLimit(refused: RefusedCall): void
  /** Writes the counts down; what can't be written is kept. */
  readonly flush: Effect.Effect<void, PortError>
}

interface Counted {
  readonly group: Readonly<Record<string, string>>
  requests: number
}

/** Counts rows of a table whose primary key is `columns`; its other column is `requests`. */
const makeCounts = (
  database: Database,
  maxRows: number,
  table: string,
  columns: readonly string[],
) => {
  const waiting = new Map<string, Counted>()
  const add = (counted: Counted) => {
    const key = JSON.stringify(columns.map((column) => counted.group[column]))
    const known = waiting.get(key)
    if (known) known.requests += counted.requests
    else if (waiting.size < maxRows) waiting.set(key, counted)
  }
  const group = sql.join(columns.map((column) => sql.ref(column)))
  const write = (counted: readonly Counted[]) => {
    const rows = JSON.stringify(counted.map(({ group, requests }) => ({ ...group, requests })))
    return database.run(() =>
      sql`
        INSERT INTO ${sql.table(table)} AS r SELECT * FROM json_populate_recordset(NULL::${sql.table(table)}, ${rows}::json)
        ON CONFLICT (${group}) DO UPDATE SET requests = r.requests + excluded.requests`.execute(
        database.queries(),
      ),
    )
  }
  const flush = Effect.suspend(() => {
    if (waiting.size === 0) return Effect.void
    const counted = [...waiting.values()]
    waiting.clear()
    return write(counted).pipe(
      Effect.asVoid,
      Effect.tapError(() => Effect.sync(() => counted.forEach(add))),
      Effect.uninterruptible,
    )
  })
  return { add, flush }
}

const named = ["account_id", "mode", "hour", "key_id", "model", "endpoint"]

/** At most `maxRows` counts wait; beyond them nothing new is counted until they are written. */
export const makeRefusedRequests = (
  database: Database,
  clock: Clock,
  maxRows: number,
): RefusedRequests => {
  const sums = makeCounts(database, maxRows, "ledger_refusal", named)
  const codes = makeCounts(database, maxRows, "ledger_refusal_code", [...named, "code"])
  const groupOf = ({ account, mode, keyId, model = "", endpoint }: RefusedCall) => ({
    account_id: account,
    mode,
    hour: new Date(Math.floor(clock.nowMs() / hourMs) * hourMs).toISOString(),
    key_id: keyId,
    model,
    endpoint,
  })
  const noteLimit = (refused: RefusedCall) =>
    codes.add({ group: { ...groupOf(refused), code: refused.code }, requests: 1 })
  return {
    noteLimit,
    note: (refused) => {
      sums.add({ group: groupOf(refused), requests: 1 })
      noteLimit(refused)
    },
    flush: Effect.andThen(sums.flush, codes.flush),
  }
}

/** Counts refused requests by the hour, and keeps some of them for the call log. */
export const makeRefusals = (database: Database, clock: Clock) => {
  const counts = makeRefusedRequests(database, clock, maxRefusedRows)
  const log = makeRefusedCalls(database, clock)
  return {
    flush: Effect.andThen(counts.flush, log.flush),
    sweep: log.sweep,
    note: (request: RefusedRequest) => {
      // an administrator's attempt is not the customer's
      if (request.caller.readOnly === "read_only_session") return
      const refused = refusedRequest(request)
      counts.note(refused)
      log.note(refused)
    },
    noteLimit: (request: AdmitRequest, reason: Refusal["reason"]) => {
      if (request.counts !== "all") return
      const refused = refusedByLimit(request, reason)
      counts.noteLimit(refused)
      log.note(refused)
    },
  }
}
