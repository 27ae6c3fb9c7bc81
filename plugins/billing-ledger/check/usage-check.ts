import { Effect, Stream } from "effect"
import { sql } from "kysely"
import {
  type ConsistencyCheck,
  type Database,
  type Finding,
  inPages,
  type PortError,
} from "../../../core/index.ts"
import { differingHours, hours, tokens } from "../proof/calls.ts"
import { verifyLedger } from "../proof/verify.ts"
import { contextOf, type LedgerCheckDeps } from "./ledger-check.ts"

interface Row {
  readonly account_id: string
  readonly mode: string
  readonly hour: Date
  readonly key_id: string
  readonly model: string
  readonly endpoint: string
  readonly said: string | null
  readonly summed: string | null
}

const group = sql`(account_id, mode, hour, key_id, model, endpoint)`
const valuesOf = ({ account_id, mode, hour, key_id, model, endpoint }: Row) =>
  sql`(${account_id}, ${mode}, ${hour}::timestamptz, ${key_id}, ${model}, ${endpoint})`

const page =
  (database: Database) =>
  (after: Row | undefined, limit: number): Effect.Effect<readonly Row[], PortError> =>
    Effect.map(
      database.run(() =>
        sql<Row>`SELECT * FROM (${differingHours}) h WHERE ${after ? sql`${group} > ${valuesOf(after)}` : sql`true`} ORDER BY account_id, mode, hour, key_id, model, endpoint LIMIT ${limit}`.execute(
          database.queries(),
        ),
      ),
      ({ rows }) => rows,
    )

/**
 * Ending a call writes to this table until its commit: while the table is locked, an hour counts
 * exactly the calls that are there.
 */
const sumAgain = (database: Database, row: Row): Effect.Effect<void, PortError> =>
  database.transaction((tx) =>
    Effect.asVoid(
      database.run(async () => {
        const db = database.queries(tx)
        await sql`LOCK TABLE ledger_usage IN SHARE ROW EXCLUSIVE MODE`.execute(db)
        await sql`DELETE FROM ledger_usage WHERE ${group} = ${valuesOf(row)}`.execute(db)
        await sql`
          INSERT INTO ledger_usage (account_id, mode, hour, key_id, model, endpoint, requests, errors, input_tokens, output_tokens, cost_micros)
          SELECT account_id, mode, ledger_hour(admitted_at), key_id, coalesce(model, ''), endpoint, count(*), count(*) FILTER (WHERE ledger_failed(state, http_status)),
            sum(input_tokens), sum(output_tokens), sum(cost_micros)
          FROM ledger_call WHERE counts IN ('all', 'money') AND state NOT IN ('open', 'refused') AND account_id = ${row.account_id} AND mode = ${row.mode} AND key_id = ${row.key_id}
            AND admitted_at >= ${row.hour} AND admitted_at < ${row.hour}::timestamptz + interval '1 hour' AND coalesce(model, '') = ${row.model} AND endpoint = ${row.endpoint}
          GROUP BY 1, 2, 3, 4, 5, 6`.execute(db)
      }),
    ),
  )

const findingOf =
  (database: Database) =>
  (row: Row): Finding => ({
    subject: `hour ${row.hour.toISOString()} of account ${row.account_id}, key ${row.key_id}, model ${row.model || "-"}, endpoint ${row.endpoint}`,
    problem: `its usage is ${row.said ?? "missing"}; its calls come to ${row.summed ?? "nothing"}`,
    remedy: "it is summed again",
    repair: sumAgain(database, row),
  })

export const usageCheck = (deps: LedgerCheckDeps): ConsistencyCheck => ({
  name: "usage",
  about:
    "the tokens of each call are those of its usage, and each hour of usage is the sum of its calls",
  findings: (looked) =>
    Stream.suspend(() => {
      const { database } = deps
      const calls = Effect.map(
        verifyLedger(database, contextOf(deps), [tokens], looked),
        ({ faults }) =>
          faults.map(
            ({ invariant, detail }): Finding => ({
              subject: detail,
              problem: `against: ${invariant}`,
            }),
          ),
      )
      const count = Effect.flatMap(
        database.run(() => hours.rows.execute(database.queries())),
        ({ rows: [row] }) => Effect.sync(() => looked(Number(row?.rows ?? 0))),
      )
      const unlike = inPages(
        {
          page: page(database),
          judge: (rows: readonly Row[]) => Effect.succeed(rows.map(findingOf(database))),
        },
        () => {},
      )
      return Stream.fromIterableEffect(calls).pipe(
        Stream.concat(Stream.fromEffectDrain(count)),
        Stream.concat(unlike),
      )
    }),
})
