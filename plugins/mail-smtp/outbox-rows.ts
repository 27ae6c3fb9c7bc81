import { Effect } from "effect"
import { sql } from "kysely"
import type { Clock, Database, PortError, Transaction } from "../../core/index.ts"

export interface OutboxTables {
  readonly mail_outbox: {
    readonly id: string
    readonly state: "waiting" | "given_up"
    /** Sealed; null once the mail is given up. */
    readonly content: string | null
    readonly sealed_by: string
    readonly attempts: number
    /** The next attempt; while one runs, when it is taken for dead. */
    readonly due_at: Date
    readonly created_at: Date
  }
}

/** A mail that this replica may try to deliver until its lease ends. `attempts` counts this one. */
export interface Claimed {
  readonly id: string
  readonly content: string
  readonly attempts: number
  readonly createdMs: number
}

/** Longer than any attempt takes. */
export const leaseMs = 60_000
export const keepMs = 7 * 24 * 60 * 60_000

export interface OutboxRows {
  insert(id: string, content: string, tx?: Transaction): Effect.Effect<void, PortError>
  /** The mail that has waited longest, if one is due that this replica can open. */
  readonly claim: Effect.Effect<Claimed | undefined, PortError>
  remove(mail: Claimed): Effect.Effect<void, PortError>
  retry(mail: Claimed, waitMs: number): Effect.Effect<void, PortError>
  giveUp(mail: Claimed): Effect.Effect<void, PortError>
  /** Deletes what is older than `keepMs`; answers how many mails nobody could open. */
  readonly sweep: Effect.Effect<number, PortError>
}

/**
 * States of a row: (none) -> waiting -> leased (waiting, due when the lease ends) -> (none: delivered) | waiting (tried again later) | given_up -> (none: swept).
 * A lease that ended belongs to the next attempt: what the earlier one says then changes nothing.
 */
export const makeOutboxRows = (
  database: Database,
  clock: Clock,
  sealedBy: () => string,
): OutboxRows => {
  const db = (tx?: Transaction) => database.queries<OutboxTables>(tx)
  const asked = (query: () => Promise<unknown>) => Effect.asVoid(database.run(query))
  const now = (plusMs = 0) => new Date(clock.nowMs() + plusMs)
  const mine = ({ id, attempts }: Claimed) => ({ id, attempts, state: "waiting" as const })
  const claimed = () =>
    sql<{ id: string; content: string; attempts: number; created_at: Date }>`
      UPDATE mail_outbox SET attempts = attempts + 1, due_at = ${now(leaseMs)}
      WHERE id = (
        SELECT id FROM mail_outbox WHERE state = 'waiting' AND sealed_by = ${sealedBy()} AND due_at <= ${now()} ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED)
      RETURNING id, content, attempts, created_at`.execute(db())
  return {
    insert: (id, content, tx) =>
      asked(() =>
        db(tx)
          .insertInto("mail_outbox")
          .values({
            id,
            state: "waiting",
            content,
            sealed_by: sealedBy(),
            attempts: 0,
            due_at: now(),
            created_at: now(),
          })
          .execute(),
      ),
    claim: Effect.map(
      database.run(() => claimed()),
      ({ rows: [row] }) =>
        row && {
          id: row.id,
          content: row.content,
          attempts: row.attempts,
          createdMs: row.created_at.getTime(),
        },
    ),
    remove: (mail) =>
      asked(() =>
        db()
          .deleteFrom("mail_outbox")
          .where((eb) => eb.and(mine(mail)))
          .execute(),
      ),
    retry: (mail, waitMs) =>
      asked(() =>
        db()
          .updateTable("mail_outbox")
          .set({ due_at: now(waitMs) })
          .where((eb) => eb.and(mine(mail)))
          .execute(),
      ),
    giveUp: (mail) =>
      asked(() =>
        db()
          .updateTable("mail_outbox")
          .set({ state: "given_up", content: null })
          .where((eb) => eb.and(mine(mail)))
          .execute(),
      ),
    sweep: Effect.map(
      database.run(() =>
        db()
          .deleteFrom("mail_outbox")
          .where("created_at", "<=", now(-keepMs))
          .returning("state")
          .execute(),
      ),
      (rows) => rows.filter((row) => row.state === "waiting").length,
    ),
  }
}
