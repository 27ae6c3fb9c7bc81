import { Effect } from "effect"
import { type Kysely, type QueryResult, sql } from "kysely"
import type { Clock, Database, PortError, Transaction } from "../../core/index.ts"

export interface OutboxTables {
  readonly mail_outbox: {
    readonly id: string
    readonly state: "waiting" | "given_up"
    /** Encrypted; null once the mail is given up. */
    readonly content: string | null
    /** Id of the key that encrypted `content`. */
    readonly sealed_by: string
    readonly attempts: number
    /** Time of the next attempt; during an attempt, the end of its lease. */
    readonly due_at: Date
    readonly created_at: Date
  }
}

interface ClaimedRow {
  readonly id: string
  readonly content: string
  readonly attempts: number
  readonly created_at: Date
}

/** A mail that this replica has leased for an attempt, which `attempts` already counts. */
export interface ClaimedMail {
  readonly id: string
  readonly content: string
  readonly attempts: number
  readonly createdMs: number
}

/** Longer than any attempt lasts. */
export const leaseMs = 60_000
export const keepMs = 7 * 24 * 60 * 60_000

export interface OutboxRows {
  insert(id: string, content: string, tx?: Transaction): Effect.Effect<void, PortError>
  /** Leases the mail that has been due longest among those that this replica can decrypt. */
  readonly claim: Effect.Effect<ClaimedMail | undefined, PortError>
  remove(mail: ClaimedMail): Effect.Effect<void, PortError>
  retry(mail: ClaimedMail, waitMs: number): Effect.Effect<void, PortError>
  giveUp(mail: ClaimedMail): Effect.Effect<void, PortError>
  /**
   * Deletes rows older than `keepMs`. Returns the number of mails that were still waiting: no
   * replica could decrypt them.
   */
  readonly sweep: Effect.Effect<number, PortError>
}

const claimMail = (
  db: Kysely<OutboxTables>,
  keyId: string,
  now: Date,
  leaseEnd: Date,
): Promise<QueryResult<ClaimedRow>> =>
  sql<ClaimedRow>`
    UPDATE mail_outbox SET attempts = attempts + 1, due_at = ${leaseEnd}
    WHERE id = (
      SELECT id FROM mail_outbox WHERE state = 'waiting' AND sealed_by = ${keyId} AND due_at <= ${now} ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING id, content, attempts, created_at`.execute(db)

/** Deletes what is older than `before`. */
const sweepMails = async (db: Kysely<OutboxTables>, before: Date): Promise<number> => {
  const deleted = await db
    .deleteFrom("mail_outbox")
    .where("created_at", "<=", before)
    .returning("state")
    .execute()
  return deleted.filter((row) => row.state === "waiting").length
}

/**
 * States of a row: (none) -> waiting -> leased (waiting, due when the lease ends) -> (none:
 * delivered) | waiting (retried later) | given_up -> (none: swept).
 * `attempts` is the fencing token of a lease: once another attempt has claimed the row, the earlier
 * one changes nothing.
 */
export const makeOutboxRows = (
  database: Database,
  clock: Clock,
  keyId: () => string,
): OutboxRows => {
  const db = (tx?: Transaction) => database.queries<OutboxTables>(tx)
  const asked = (query: () => Promise<unknown>) => Effect.asVoid(database.run(query))
  const now = (plusMs = 0) => new Date(clock.nowMs() + plusMs)
  const mine = ({ id, attempts }: ClaimedMail) => ({ id, attempts, state: "waiting" as const })
  return {
    insert: (id, content, tx) =>
      asked(() =>
        db(tx)
          .insertInto("mail_outbox")
          .values({
            id,
            state: "waiting",
            content,
            sealed_by: keyId(),
            attempts: 0,
            due_at: now(),
            created_at: now(),
          })
          .execute(),
      ),
    claim: Effect.map(
      database.run(() => claimMail(db(), keyId(), now(), now(leaseMs))),
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
    sweep: database.run(() => sweepMails(db(), now(-keepMs))),
  }
}
