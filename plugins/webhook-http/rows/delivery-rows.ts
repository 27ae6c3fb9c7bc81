import { Effect } from "effect"
import { sql } from "kysely"
import type { Database, PortError, Transaction } from "../../../core/index.ts"
import type { DeliveryRow, WebhookTables } from "./tables.ts"

export type NewDelivery = Pick<DeliveryRow, "id" | "webhook_id" | "event" | "body" | "once"> & {
  readonly at: Date
}
export type StoredOutcome = Pick<DeliveryRow, "state" | "tries" | "next_attempt_at" | "attempts">

export type PendingRow = Pick<
  DeliveryRow,
  "id" | "seq" | "webhook_id" | "round" | "tries" | "next_attempt_at" | "created_at"
> & {
  readonly url: string | null
  readonly owner: string | null
}

const perSweep = 2_000

/** What the API shows of one webhook's deliveries. */
const listing = (database: Database) => {
  const db = () => database.queries<WebhookTables>()
  return {
    find: (id: string): Effect.Effect<DeliveryRow | undefined, PortError> =>
      database.run(() =>
        db().selectFrom("webhook_delivery").selectAll().where("id", "=", id).executeTakeFirst(),
      ),
    /** The delivery's place in lists; undefined when there is no such delivery of the webhook. */
    seqOf: (webhook: string, id: string): Effect.Effect<bigint | undefined, PortError> =>
      Effect.map(
        database.run(() =>
          db()
            .selectFrom("webhook_delivery")
            .select("seq")
            .where((eb) => eb.and({ webhook_id: webhook, id }))
            .executeTakeFirst(),
        ),
        (row) => row?.seq,
      ),
    /** The newest first, those before `before`. */
    list: (
      webhook: string,
      limit: number,
      before: bigint | undefined,
    ): Effect.Effect<readonly DeliveryRow[], PortError> =>
      database.run(() =>
        db()
          .selectFrom("webhook_delivery")
          .selectAll()
          .where("webhook_id", "=", webhook)
          .$if(before !== undefined, (query) => query.where("seq", "<", before ?? 0n))
          .orderBy("seq", "desc")
          .limit(limit)
          .execute(),
      ),
  }
}

/** What the sweeper and the consistency check look for. */
const maintaining = (database: Database) => {
  const db = () => database.queries<WebhookTables>()
  return {
    /**
     * The pending deliveries in the order of creation; `url` is null where the webhook was deleted.
     */
    pending: (after: bigint, limit: number): Effect.Effect<readonly PendingRow[], PortError> =>
      database.run(() =>
        db()
          .selectFrom("webhook_delivery as d")
          .leftJoin("webhook_registration as r", "r.id", "d.webhook_id")
          .select([
            "d.id",
            "d.seq",
            "d.webhook_id",
            "d.round",
            "d.tries",
            "d.next_attempt_at",
            "d.created_at",
            "r.url",
            sql<string | null>`r.account || ' (' || r.mode || ')'`.as("owner"),
          ])
          .where("d.state", "=", "pending")
          .where("d.seq", ">", after)
          .orderBy("d.seq")
          .limit(limit)
          .execute(),
      ),
    /** Pending deliveries whose attempt was due before `before`: their job is lost. */
    overdue: (
      before: Date,
    ): Effect.Effect<readonly (DeliveryRow & { readonly url: string | null })[], PortError> =>
      database.run(() =>
        db()
          .selectFrom("webhook_delivery as d")
          .leftJoin("webhook_registration as r", "r.id", "d.webhook_id")
          .selectAll("d")
          .select("r.url")
          .where("d.state", "=", "pending")
          .where("d.next_attempt_at", "<=", before)
          .orderBy("d.next_attempt_at")
          .limit(perSweep)
          .execute(),
      ),
    /**
     * Deletes ended deliveries that were created before `before`. Returns the number of deleted
     * rows.
     */
    sweep: (before: Date): Effect.Effect<number, PortError> =>
      Effect.map(
        database.run(() =>
          sql`DELETE FROM webhook_delivery WHERE id IN (
            SELECT id FROM webhook_delivery WHERE created_at <= ${before} AND state <> 'pending' LIMIT ${perSweep} FOR UPDATE SKIP LOCKED)`.execute(
            db(),
          ),
        ),
        ({ numAffectedRows = 0n }) => Number(numAffectedRows),
      ),
  }
}

const attempting = (database: Database) => {
  const db = (tx?: Transaction) => database.queries<WebhookTables>(tx)
  return {
    insert: ({ at, ...row }: NewDelivery, tx: Transaction): Effect.Effect<DeliveryRow, PortError> =>
      database.run(() =>
        db(tx)
          .insertInto("webhook_delivery")
          .values({
            ...row,
            state: "pending",
            round: 0,
            tries: 0,
            round_at: at,
            next_attempt_at: at,
            created_at: at,
          })
          .returningAll()
          .executeTakeFirstOrThrow(),
      ),
    lock: (id: string, tx: Transaction): Effect.Effect<DeliveryRow | undefined, PortError> =>
      database.run(() =>
        db(tx)
          .selectFrom("webhook_delivery")
          .selectAll()
          .where("id", "=", id)
          .forUpdate()
          .executeTakeFirst(),
      ),
    record: (id: string, set: Partial<StoredOutcome>, tx: Transaction) =>
      Effect.asVoid(
        database.run(() =>
          db(tx).updateTable("webhook_delivery").set(set).where("id", "=", id).execute(),
        ),
      ),
    /** Begins a new round. */
    beginRound: (
      webhook: string,
      id: string,
      at: Date,
      tx: Transaction,
    ): Effect.Effect<DeliveryRow | undefined, PortError> =>
      database.run(() =>
        db(tx)
          .updateTable("webhook_delivery")
          .set({
            state: "pending",
            tries: 0,
            round: sql<number>`round + 1`,
            round_at: at,
            next_attempt_at: at,
          })
          .where((eb) => eb.and({ webhook_id: webhook, id }))
          .returningAll()
          .executeTakeFirst(),
      ),
  }
}

const givingUp = (database: Database) => {
  const db = (tx?: Transaction) => database.queries<WebhookTables>(tx)
  const asVoid = (query: () => Promise<unknown>): Effect.Effect<void, PortError> =>
    Effect.asVoid(database.run(query))
  const ended = { state: "giveup", next_attempt_at: null } as const
  return {
    giveUp: (id: string, tx?: Transaction) =>
      asVoid(() =>
        db(tx)
          .updateTable("webhook_delivery")
          .set(ended)
          .where((eb) => eb.and({ id, state: "pending" }))
          .execute(),
      ),
    giveUpAll: (webhook: string, tx: Transaction) =>
      asVoid(() =>
        db(tx)
          .updateTable("webhook_delivery")
          .set(ended)
          .where((eb) => eb.and({ webhook_id: webhook, state: "pending" }))
          .execute(),
      ),
  }
}

export const makeDeliveryRows = (database: Database) => ({
  ...listing(database),
  ...maintaining(database),
  ...attempting(database),
  ...givingUp(database),
})
