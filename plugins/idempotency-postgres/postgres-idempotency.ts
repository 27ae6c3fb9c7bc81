import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { type Kysely, sql } from "kysely"
import { type Clock, type Database, type Idempotency, type IdempotencyState, type Json, PortError, type Tenant } from "../../core/index.ts"

/** A running request that has not ended after this long is taken for dead. */
export const leaseMs = 15 * 60_000
export const keepMs = 24 * 60 * 60_000

export interface IdempotencyTables {
  readonly idempotency_key: {
    readonly account: string
    readonly mode: "live" | "test"
    readonly key: string
    readonly fingerprint: string
    /** Made anew by every `begin`: whoever finds its own one in the row is the first. */
    readonly attempt: string
    readonly state: "running" | "done"
    readonly lease_until: Date
    readonly expires_at: Date
    readonly status: number | null
    readonly reply: string | null
  }
}

type Row = Pick<IdempotencyTables["idempotency_key"], "attempt" | "fingerprint" | "state" | "status" | "reply">

/** One statement: the row's lock decides between parallel ones, and the loser reads what the winner wrote. */
const beginRow = (db: Kysely<IdempotencyTables>, tenant: Tenant, key: string, fingerprint: string, attempt: string, nowMs: number) => {
  const now = new Date(nowMs)
  const free = sql<boolean>`(k.expires_at <= ${now} OR (k.state = 'running' AND k.lease_until <= ${now}))`
  const renewed = (column: string) => sql`CASE WHEN ${free} THEN ${sql.ref(`excluded.${column}`)} ELSE ${sql.ref(`k.${column}`)} END`
  return sql<Row>`
    INSERT INTO idempotency_key AS k (account, mode, key, fingerprint, attempt, state, lease_until, expires_at)
    VALUES (${tenant.account}, ${tenant.mode}, ${key}, ${fingerprint}, ${attempt}, 'running', ${new Date(nowMs + leaseMs)}, ${new Date(nowMs + keepMs)})
    ON CONFLICT (account, mode, key) DO UPDATE SET
      fingerprint = ${renewed("fingerprint")}, attempt = ${renewed("attempt")}, state = ${renewed("state")}, lease_until = ${renewed("lease_until")},
      expires_at = ${renewed("expires_at")}, status = ${renewed("status")}, reply = ${renewed("reply")}
    RETURNING k.attempt, k.fingerprint, k.state, k.status, k.reply`.execute(db)
}

const stateOf = (row: Row, attempt: string, fingerprint: string): IdempotencyState => {
  if (row.attempt === attempt) return { state: "new" }
  if (row.fingerprint !== fingerprint) return { state: "mismatch" }
  if (row.state === "running" || row.status === null || row.reply === null) return { state: "running" }
  return { state: "done", reply: { status: row.status, json: JSON.parse(row.reply) as Json } }
}

/** States of a row: (none) -> running -> done -> (none: swept, or begun anew after 24 h); running -> (none: forgotten) | running (begun anew: its lease ended). */
export const makePostgresIdempotency = (database: Database, clock: Clock): Idempotency => {
  const db = () => database.queries<IdempotencyTables>()
  return {
    begin: (tenant, key, fingerprint) =>
      Effect.suspend(() => {
        const attempt = randomUUID()
        return Effect.flatMap(
          database.run(() => beginRow(db(), tenant, key, fingerprint, attempt, clock.nowMs())),
          ({ rows: [row] }) => (row ? Effect.succeed(stateOf(row, attempt, fingerprint)) : Effect.fail(new PortError({ port: "idempotency", message: "no row came back" }))),
        )
      }),
    finish: (tenant, key, reply) =>
      Effect.asVoid(
        database.run(() =>
          db()
            .updateTable("idempotency_key")
            .set({ state: "done", status: reply.status, reply: JSON.stringify(reply.json ?? null), expires_at: new Date(clock.nowMs() + keepMs) })
            .where((eb) => eb.and({ account: tenant.account, mode: tenant.mode, key, state: "running" }))
            .execute(),
        ),
      ),
    forget: (tenant, key) =>
      Effect.asVoid(
        database.run(() =>
          db()
            .deleteFrom("idempotency_key")
            .where((eb) => eb.and({ account: tenant.account, mode: tenant.mode, key, state: "running" }))
            .execute(),
        ),
      ),
  }
}
