import { Effect, Schedule } from "effect"
import { CompiledQuery, type Kysely, sql } from "kysely"
import { type Database, PortError, type Transaction } from "../../core/index.ts"
import { isContention } from "./failure.ts"
import {
  type AdmissionVerdict,
  type LedgerRequest,
  type LedgerSettlement,
  type RequestRow,
  toRequest,
  toSettlements,
  type VerdictRow,
  verdictOf,
} from "./statement-values.ts"

const pauses = Schedule.exponential("5 millis").pipe(Schedule.jittered, Schedule.upTo({ times: 3 }))

/**
 * A deadlock rolls the whole statement back, so it may run again; not within a transaction of the
 * caller. A statement that succeeds, as nearly all do, does not pay for the schedule.
 */
const retryContention = <A>(statement: Effect.Effect<A, PortError>): Effect.Effect<A, PortError> =>
  Effect.catch(statement, (error) =>
    isContention(error)
      ? Effect.retry(statement, { schedule: pauses, while: isContention })
      : Effect.fail(error),
  )

export interface Statements {
  admit(
    requests: readonly LedgerRequest[],
    replica: string,
    nowMs: number,
  ): Effect.Effect<readonly AdmissionVerdict[], PortError>
  /** Admits calls that were admitted before; returns the ids of those that it did not refuse. */
  readmit(
    rows: readonly RequestRow[],
    replica: string,
    nowMs: number,
    tx?: Transaction,
  ): Effect.Effect<ReadonlySet<string>, PortError>
  /** Returns how many of the calls were open. */
  settle(
    items: readonly LedgerSettlement[],
    nowMs: number,
    tx?: Transaction,
  ): Effect.Effect<number, PortError>
  /** The calls of these that the ledger does not know. */
  missing(ids: readonly string[], tx?: Transaction): Effect.Effect<readonly string[], PortError>
  voidChildren(parent: string, nowMs: number, tx?: Transaction): Effect.Effect<void, PortError>
  adjust(
    entry: {
      readonly id: string
      readonly account: string
      readonly amountMicros: bigint
      readonly reason: string
    },
    nowMs: number,
    tx?: Transaction,
  ): Effect.Effect<"done" | "repeated" | "too_low", PortError>
  spentThisMonth(
    keyIds: readonly string[],
    nowMs: number,
  ): Effect.Effect<ReadonlyMap<string, bigint>, PortError>
  balance(
    account: string,
    tx?: Transaction,
  ): Effect.Effect<{ readonly balanceMicros: bigint; readonly heldMicros: bigint }, PortError>
}

interface Query<Row> {
  execute(db: Kysely<unknown>): Promise<{ readonly rows: readonly Row[] }>
}

type Rows = <Row>(query: Query<Row>, tx?: Transaction) => Effect.Effect<readonly Row[], PortError>

const rowsOf =
  (database: Database): Rows =>
  (query, tx) => {
    const once = Effect.map(
      database.run(() => query.execute(database.queries(tx))),
      (result) => result.rows,
    )
    return tx ? once : retryContention(once)
  }

/**
 * The two statements of a paid call. Their texts are constant, so they are not built anew for each,
 * and begin with `prepared`: they are parsed once for each connection.
 */
const admitText = "/* prepared */ SELECT * FROM ledger_admit($1, $2, $3) ORDER BY place"
const settleText = "/* prepared */ SELECT ledger_settle($1, $2) AS closed"

const constant = <Row>(text: string, parameters: readonly unknown[]): Query<Row> => ({
  execute: (db) => db.executeQuery<Row>(CompiledQuery.raw(text, [...parameters])),
})

const one = <Row>(rows: Effect.Effect<readonly Row[], PortError>): Effect.Effect<Row, PortError> =>
  Effect.flatMap(rows, ([row]) =>
    row === undefined
      ? Effect.fail(new PortError({ port: "billing", message: "the ledger gave no row" }))
      : Effect.succeed(row),
  )

const admission = (requests: readonly RequestRow[], replica: string, nowMs: number) =>
  constant<VerdictRow>(admitText, [JSON.stringify(requests), replica, new Date(nowMs)])

const callStatements = (
  rows: Rows,
): Pick<Statements, "admit" | "readmit" | "settle" | "missing" | "voidChildren"> => ({
  admit: (requests, replica, nowMs) =>
    Effect.map(rows(admission(requests.map(toRequest), replica, nowMs)), (verdicts) =>
      verdicts.map((row, index) => verdictOf(row, requests[index])),
    ),
  readmit: (requests, replica, nowMs, tx) =>
    Effect.map(
      rows(
        admission(
          requests.map((row, place) => ({ ...row, place })),
          replica,
          nowMs,
        ),
        tx,
      ),
      (verdicts) => new Set(requests.filter((_, at) => !verdicts[at]?.refusal).map(({ id }) => id)),
    ),
  settle: (items, nowMs, tx) =>
    items.length === 0
      ? Effect.succeed(0)
      : Effect.map(
          rows(
            constant<{ closed: bigint }>(settleText, [
              JSON.stringify(toSettlements(items)),
              new Date(nowMs),
            ]),
            tx,
          ),
          ([row]) => Number(row?.closed ?? 0),
        ),
  missing: (ids, tx) =>
    Effect.map(
      rows(
        sql<{
          id: string
        }>`SELECT x::text AS id FROM unnest(${ids}::uuid[]) x WHERE NOT EXISTS (SELECT FROM ledger_call c WHERE c.id = x)`,
        tx,
      ),
      (found) => found.map(({ id }) => id),
    ),
  voidChildren: (parent, nowMs, tx) =>
    Effect.asVoid(
      rows(
        sql`SELECT ledger_settle((SELECT json_agg(json_build_object('id', id, 'outcome', 'voided')) FROM ledger_call WHERE parent_id = ${parent} AND state = 'open'), ${new Date(nowMs)})`,
        tx,
      ),
    ),
})

/** The SQL functions of the ledger, typed. */
export const makeStatements = (database: Database): Statements => {
  const rows = rowsOf(database)
  return {
    ...callStatements(rows),
    adjust: ({ id, account, amountMicros, reason }, nowMs, tx) =>
      Effect.map(
        one(
          rows(
            sql<{
              result: "done" | "repeated" | "too_low"
            }>`SELECT ledger_adjust(${id}, ${account}, ${String(amountMicros)}, ${reason}, ${new Date(nowMs)}) AS result`,
            tx,
          ),
        ),
        ({ result }) => result,
      ),
    spentThisMonth: (keyIds, nowMs) =>
      Effect.map(
        rows(
          sql<{
            key_id: string
            spent_micros: bigint
          }>`SELECT key_id, spent_micros FROM ledger_key WHERE key_id = ANY(${keyIds}) AND month = ledger_month(${new Date(nowMs)})`,
        ),
        (keys) => new Map(keys.map((row) => [row.key_id, row.spent_micros])),
      ),
    balance: (account, tx) =>
      Effect.map(
        rows(
          sql<{
            balance_micros: bigint
            held_micros: bigint
          }>`SELECT balance_micros, held_micros FROM ledger_account WHERE account_id = ${account}`,
          tx,
        ),
        ([row]) => ({
          balanceMicros: row?.balance_micros ?? 0n,
          heldMicros: row?.held_micros ?? 0n,
        }),
      ),
  }
}
