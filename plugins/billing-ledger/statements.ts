import { Effect, Schedule } from "effect"
import { type RawBuilder, sql } from "kysely"
import {
  type AdmitRequest,
  type Database,
  PortError,
  type RateState,
  type Refusal,
  type Settlement,
  type Transaction,
  type UsageByModel,
} from "../../core/index.ts"
import { isContention } from "./failure.ts"

const maxInt8 = 2n ** 63n - 1n
const maxInt4 = 2 ** 31 - 1

/** A hold or cap beyond bigint is as good as the largest one: no balance covers it. */
const int8 = (amount: bigint): string => String(amount > maxInt8 ? maxInt8 : amount)
const count = (limit: number): number => Math.max(0, Math.min(maxInt4, Math.floor(limit)))

const admission = (
  {
    id,
    caller,
    endpoint,
    requestId,
    model,
    prices,
    expiresMs,
    holdMicros,
    parent,
    counts,
  }: AdmitRequest,
  place: number,
) => {
  const { tenant, keyId, limits } = caller
  const asksForMoney = tenant.mode === "live" && counts !== "rpm"
  return {
    place,
    id,
    account_id: tenant.account,
    // a dashboard session has limits too: one set for the account
    key_id: keyId ?? `session:${tenant.account}`,
    mode: tenant.mode,
    counts,
    hold_micros: asksForMoney ? int8(holdMicros) : "0",
    endpoint,
    request_id: requestId,
    parent_id: parent ?? null,
    model: model ?? null,
    prices: prices ?? null,
    expires_at: expiresMs === undefined ? null : new Date(expiresMs).toISOString(),
    rpm: count(limits.rpm),
    rpd: count(limits.rpd),
    slots: count(limits.concurrency),
    cap_micros: int8(limits.monthlyCapMicros),
  }
}

interface VerdictRow {
  readonly place: number
  readonly refusal: Refusal["reason"] | null
  readonly remaining: bigint
  readonly reset_ms: bigint
  readonly retry_after_ms: bigint
  readonly hold_us: bigint
}

export type Verdict = {
  readonly rate: RateState
  readonly refused?: Pick<Refusal, "reason" | "retryAfterMs">
}

const verdictOf = (row: VerdictRow, request: AdmitRequest | undefined): Verdict => {
  const rate = {
    limit: request?.caller.limits.rpm ?? 0,
    remaining: Number(row.remaining),
    resetMs: Number(row.reset_ms),
  }
  if (row.refusal)
    return { rate, refused: { reason: row.refusal, retryAfterMs: Number(row.retry_after_ms) } }
  return {
    rate: request?.counts === "peek" ? rate : { ...rate, holdMs: Number(row.hold_us) / 1000 },
  }
}

/** Of all models together, rounded up as they are priced. */
const tokensOf = (usage: UsageByModel, kind: "inputTokens" | "outputTokens"): number => {
  let sum = 0
  for (const used of Object.values(usage)) sum += Math.max(0, Math.ceil(used[kind])) || 0
  return Math.min(sum, Number.MAX_SAFE_INTEGER)
}

const settlement = ({ id, outcome, costMicros, usage, httpStatus }: Settlement) => ({
  id,
  outcome,
  cost_micros: int8(costMicros),
  usage,
  input_tokens: tokensOf(usage, "inputTokens"),
  output_tokens: tokensOf(usage, "outputTokens"),
  http_status: httpStatus,
})

/** In one statement an id may come once. */
const firstOfEach = (items: readonly Settlement[]) => [
  ...new Map([...items].reverse().map((item) => [item.id, item])).values(),
]

/** A deadlock rolls the whole statement back, so it may run again; not inside a transaction of somebody else. */
const again = <A>(statement: Effect.Effect<A, PortError>): Effect.Effect<A, PortError> =>
  Effect.retry(statement, {
    schedule: Schedule.exponential("5 millis").pipe(Schedule.jittered, Schedule.upTo({ times: 4 })),
    while: isContention,
  })

export interface Statements {
  admit(
    requests: readonly AdmitRequest[],
    replica: string,
    nowMs: number,
  ): Effect.Effect<readonly Verdict[], PortError>
  settle(
    items: readonly Settlement[],
    nowMs: number,
    tx?: Transaction,
  ): Effect.Effect<void, PortError>
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

/** The ledger's functions in SQL, typed. */
export const makeStatements = (database: Database): Statements => {
  const rows = <Row>(
    query: RawBuilder<Row>,
    tx?: Transaction,
  ): Effect.Effect<readonly Row[], PortError> => {
    const once = Effect.map(
      database.run(() => query.execute(database.queries(tx))),
      (result) => result.rows,
    )
    return tx ? once : again(once)
  }
  const one = <Row>(query: RawBuilder<Row>, tx?: Transaction): Effect.Effect<Row, PortError> =>
    Effect.flatMap(rows(query, tx), ([row]) =>
      row === undefined
        ? Effect.fail(new PortError({ port: "billing", message: "the ledger gave no row" }))
        : Effect.succeed(row),
    )

  return {
    admit: (requests, replica, nowMs) =>
      Effect.map(
        rows(
          sql<VerdictRow>`/* prepared */ SELECT * FROM ledger_admit(${JSON.stringify(requests.map(admission))}, ${replica}, ${new Date(nowMs)}) ORDER BY place`,
        ),
        (verdicts) => verdicts.map((row, index) => verdictOf(row, requests[index])),
      ),
    settle: (items, nowMs, tx) =>
      items.length === 0
        ? Effect.void
        : Effect.asVoid(
            rows(
              sql`/* prepared */ SELECT ledger_settle(${JSON.stringify(firstOfEach(items).map(settlement))}, ${new Date(nowMs)})`,
              tx,
            ),
          ),
    voidChildren: (parent, nowMs, tx) =>
      Effect.asVoid(
        rows(
          sql`SELECT ledger_settle((SELECT json_agg(json_build_object('id', id, 'outcome', 'voided')) FROM ledger_call WHERE parent_id = ${parent} AND state = 'open'), ${new Date(nowMs)})`,
          tx,
        ),
      ),
    adjust: ({ id, account, amountMicros, reason }, nowMs, tx) =>
      Effect.map(
        one(
          sql<{
            result: "done" | "repeated" | "too_low"
          }>`SELECT ledger_adjust(${id}, ${account}, ${String(amountMicros)}, ${reason}, ${new Date(nowMs)}) AS result`,
          tx,
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
        (found) => new Map(found.map((row) => [row.key_id, row.spent_micros])),
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
