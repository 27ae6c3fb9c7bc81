import { randomUUID } from "node:crypto"
import { Effect, Schedule } from "effect"
import { type Kysely, sql } from "kysely"
import {
  type Clock,
  type Database,
  type Idempotency,
  type IdempotencyState,
  type Json,
  PortError,
  type Secrets,
  type Tenant,
} from "../../core/index.ts"
import { type HeldKey, makeRunningAttempts, type RunningAttempts } from "./running-attempts.ts"

/** A request whose lease was not renewed for this time is presumed dead, with its server. */
export const leaseMs = 15_000
export const renewMs = 3_000
const endingMs = 15 * 60_000
const rowsPerRenewal = 2_000
export const keepMs = 24 * 60 * 60_000

export interface IdempotencyTables {
  readonly idempotency_key: {
    readonly account: string
    readonly mode: "live" | "test"
    readonly key: string
    readonly fingerprint: string
    /**
     * The fencing token: each `begin` makes one, and the request that finds its own in the row may
     * run.
     */
    readonly attempt: string
    readonly state: "running" | "done"
    readonly lease_until: Date
    readonly expires_at: Date
    readonly status: number | null
    /** Encrypted, as a reply may show a new API key. */
    readonly reply: string | null
    /** Id of the key that encrypted `reply`; null: written before replies were encrypted. */
    readonly sealed_by: string | null
    readonly call_id: string | null
  }
}

type Row = Pick<
  IdempotencyTables["idempotency_key"],
  "attempt" | "fingerprint" | "state" | "lease_until" | "status" | "reply" | "sealed_by" | "call_id"
>

/**
 * One statement: the lock of the row decides between parallel requests, and the losers read what
 * the winner wrote.
 */
const beginRow = (
  db: Kysely<IdempotencyTables>,
  tenant: Tenant,
  key: string,
  fingerprint: string,
  attempt: string,
  nowMs: number,
) => {
  const now = new Date(nowMs)
  const free = sql<boolean>`(k.expires_at <= ${now} OR (k.state = 'running' AND k.lease_until <= ${now}))`
  const renewed = (column: string) =>
    sql`CASE WHEN ${free} THEN ${sql.ref(`excluded.${column}`)} ELSE ${sql.ref(`k.${column}`)} END`
  return sql<Row>`
    INSERT INTO idempotency_key AS k (account, mode, key, fingerprint, attempt, state, lease_until, expires_at)
    VALUES (${tenant.account}, ${tenant.mode}, ${key}, ${fingerprint}, ${attempt}, 'running', ${new Date(nowMs + leaseMs)}, ${new Date(nowMs + keepMs)})
    ON CONFLICT (account, mode, key) DO UPDATE SET
      fingerprint = ${renewed("fingerprint")}, attempt = ${renewed("attempt")}, state = ${renewed("state")}, lease_until = ${renewed("lease_until")},
      expires_at = ${renewed("expires_at")}, status = ${renewed("status")}, reply = ${renewed("reply")}, sealed_by = ${renewed("sealed_by")}, call_id = ${renewed("call_id")}
    RETURNING k.attempt, k.fingerprint, k.state, k.lease_until, k.status, k.reply, k.sealed_by, k.call_id`.execute(
    db,
  )
}

const failure = (message: string) => Effect.fail(new PortError({ port: "idempotency", message }))
const cannotDecrypt =
  "the reply to this Idempotency-Key was stored by a server with another secret; give all servers the same RAKIT_SECRET_KEY"

/** The clocks of two servers may differ by more than the lease. */
const leftOf = (until: Date, nowMs: number): number =>
  Math.min(leaseMs, Math.max(1, until.getTime() - nowMs))

const stateOf = (
  row: Row,
  attempt: string,
  fingerprint: string,
  nowMs: number,
  secrets: Secrets,
): Effect.Effect<IdempotencyState, PortError> => {
  if (row.attempt === attempt) return Effect.succeed({ state: "new" })
  if (row.fingerprint !== fingerprint) return Effect.succeed({ state: "mismatch" })
  if (row.state === "running" || row.status === null || row.reply === null)
    return Effect.succeed({ state: "running", leaseLeftMs: leftOf(row.lease_until, nowMs) })
  const reply = row.sealed_by === null ? row.reply : secrets.decrypt(row.reply)
  if (reply === undefined) return failure(cannotDecrypt)
  return Effect.succeed({
    state: "done",
    reply: {
      status: row.status,
      json: JSON.parse(reply) as Json,
      ...(row.call_id !== null && { callId: row.call_id }),
    },
  })
}

export const isOutage = ({ why }: PortError) => why === "unavailable" || why === "full"
const maxLater = 1_000
const retries = Schedule.max([
  Schedule.min([Schedule.exponential("250 millis"), Schedule.spaced("1 second")]),
  Schedule.during(endingMs),
])

/**
 * A request that ends while the database is away ends its row when that is back: otherwise its key
 * would be refused as running, and then be run and paid again. In memory only.
 */
const laterOnce = () => {
  let waiting = 0
  return (end: Effect.Effect<void, PortError>): Effect.Effect<void, PortError> =>
    Effect.catch(end, (error) => {
      if (!isOutage(error) || waiting >= maxLater) return Effect.fail(error)
      waiting += 1
      const again = end.pipe(
        Effect.retry({ schedule: retries, while: isOutage }),
        Effect.ignore,
        Effect.ensuring(
          Effect.sync(() => {
            waiting -= 1
          }),
        ),
      )
      return Effect.asVoid(Effect.forkDetach(again))
    })
}

const renewal = (
  database: Database,
  clock: Clock,
  attempts: RunningAttempts,
): Effect.Effect<void, PortError> => {
  const renewSome = (held: readonly HeldKey[]) =>
    database.run(() =>
      sql`
        UPDATE idempotency_key AS k SET lease_until = ${new Date(clock.nowMs() + leaseMs)}
        FROM unnest(${held.map(({ account }) => account)}::text[], ${held.map(({ mode }) => mode)}::text[],
          ${held.map(({ key }) => key)}::text[], ${held.map(({ attempt }) => attempt)}::uuid[]) AS h (account, mode, key, attempt)
        WHERE (k.account, k.mode, k.key, k.attempt) = (h.account, h.mode, h.key, h.attempt) AND k.state = 'running'`.execute(
        database.queries(),
      ),
    )
  return Effect.suspend(() => {
    const held = attempts.all()
    const starts = Array.from({ length: Math.ceil(held.length / rowsPerRenewal) }, (_, n) => n)
    return Effect.forEach(
      starts,
      (n) => renewSome(held.slice(n * rowsPerRenewal, (n + 1) * rowsPerRenewal)),
      { discard: true },
    )
  })
}

/**
 * A running row has a lease that its server renews: that of a server that was killed ends soon.
 * States of a row: (none) -> running -> done -> (none: swept, or begun again after 24 h); running
 * -> (none: forgotten) | running (begun again after its lease ended). Only the attempt in the row
 * can end it: when the lease ended and another request has begun with the key, the earlier attempt
 * changes nothing.
 */
export const makePostgresIdempotency = (
  database: Database,
  clock: Clock,
  secrets: Secrets,
): Idempotency & {
  /** Renews the leases of this server's running requests. Call it each `renewMs`. */
  readonly renew: Effect.Effect<void, PortError>
} => {
  const db = () => database.queries<IdempotencyTables>()
  const attempts = makeRunningAttempts()
  const begin = (tenant: Tenant, key: string, fingerprint: string) =>
    Effect.gen(function* () {
      const attempt = randomUUID()
      const nowMs = clock.nowMs()
      const { rows } = yield* database.run(() =>
        beginRow(db(), tenant, key, fingerprint, attempt, nowMs),
      )
      if (!rows[0]) return yield* failure("no row came back")
      const state = yield* stateOf(rows[0], attempt, fingerprint, nowMs, secrets)
      if (state.state === "new") attempts.add(tenant, key, attempt)
      return state
    })
  const held = (tenant: Tenant, key: string, attempt: string) => ({
    account: tenant.account,
    mode: tenant.mode,
    key,
    attempt,
    state: "running" as const,
  })
  const endLater = laterOnce()
  const ending = (tenant: Tenant, key: string, query: (attempt: string) => Promise<unknown>) =>
    Effect.suspend(() => {
      const attempt = attempts.take(tenant, key)
      return attempt === undefined
        ? Effect.void
        : endLater(Effect.asVoid(database.run(() => query(attempt))))
    })
  return {
    begin,
    renew: renewal(database, clock, attempts),
    finish: (tenant, key, { status, json, callId }) =>
      ending(tenant, key, (attempt) =>
        db()
          .updateTable("idempotency_key")
          .set({
            state: "done",
            status,
            reply: secrets.encrypt(JSON.stringify(json ?? null)),
            sealed_by: secrets.keyId,
            call_id: callId ?? null,
            expires_at: new Date(clock.nowMs() + keepMs),
          })
          .where((eb) => eb.and(held(tenant, key, attempt)))
          .execute(),
      ),
    forget: (tenant, key) =>
      ending(tenant, key, (attempt) =>
        db()
          .deleteFrom("idempotency_key")
          .where((eb) => eb.and(held(tenant, key, attempt)))
          .execute(),
      ),
  }
}
