import { Effect } from "effect"
import { sql } from "kysely"
import type { Database, PortError, Tenant, Transaction } from "../../../core/index.ts"
import type { RegistrationRow, WebhookTables } from "./tables.ts"

export type NewRegistration = Pick<
  RegistrationRow,
  "id" | "url" | "events" | "description" | "secret" | "created_at"
>

const ownedBy = ({ account, mode }: Tenant) => ({ account, mode })

const reading = (database: Database) => {
  const db = (tx?: Transaction) => database.queries<WebhookTables>(tx)
  return {
    find: (
      tenant: Tenant,
      id: string,
      tx?: Transaction,
    ): Effect.Effect<RegistrationRow | undefined, PortError> =>
      database.run(() =>
        db(tx)
          .selectFrom("webhook_registration")
          .selectAll()
          .where((eb) => eb.and({ ...ownedBy(tenant), id }))
          .executeTakeFirst(),
      ),
    /** Newest first, those before `before`. */
    list: (
      tenant: Tenant,
      limit: number,
      before: bigint | undefined,
    ): Effect.Effect<readonly RegistrationRow[], PortError> =>
      database.run(() =>
        db()
          .selectFrom("webhook_registration")
          .selectAll()
          .where((eb) => eb.and(ownedBy(tenant)))
          .$if(before !== undefined, (query) => query.where("seq", "<", before ?? 0n))
          .orderBy("seq", "desc")
          .limit(limit)
          .execute(),
      ),
    /** Returns the ids of the active webhooks that asked for the event. */
    subscribed: (
      tenant: Tenant,
      event: string,
      tx: Transaction,
    ): Effect.Effect<readonly string[], PortError> =>
      Effect.map(
        database.run(() =>
          db(tx)
            .selectFrom("webhook_registration")
            .select("id")
            .where((eb) => eb.and({ ...ownedBy(tenant), status: "active" }))
            .where(sql<boolean>`${event} = ANY(events)`)
            .execute(),
        ),
        (rows) => rows.map(({ id }) => id),
      ),
    findById: (id: string): Effect.Effect<RegistrationRow | undefined, PortError> =>
      database.run(() =>
        db().selectFrom("webhook_registration").selectAll().where("id", "=", id).executeTakeFirst(),
      ),
  }
}

const writing = (database: Database) => {
  const db = (tx?: Transaction) => database.queries<WebhookTables>(tx)
  return {
    /** Until the transaction ends nobody else can create a webhook of this tenant. */
    count: (tenant: Tenant, tx: Transaction): Effect.Effect<number, PortError> =>
      database.run(async () => {
        await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`webhook ${tenant.account} ${tenant.mode}`}, 0))`.execute(
          db(tx),
        )
        const { many } = await db(tx)
          .selectFrom("webhook_registration")
          .select((eb) => eb.fn.countAll<string>().as("many"))
          .where((eb) => eb.and(ownedBy(tenant)))
          .executeTakeFirstOrThrow()
        return Number(many)
      }),
    insert: (
      tenant: Tenant,
      row: NewRegistration,
      tx: Transaction,
    ): Effect.Effect<RegistrationRow, PortError> =>
      database.run(() =>
        db(tx)
          .insertInto("webhook_registration")
          .values({ ...ownedBy(tenant), ...row, status: "active" })
          .returningAll()
          .executeTakeFirstOrThrow(),
      ),
    /** The old secret keeps signing until `oldUntil`. */
    rotate: (
      tenant: Tenant,
      id: string,
      secret: string,
      oldUntil: Date,
    ): Effect.Effect<RegistrationRow | undefined, PortError> =>
      database.run(() =>
        db()
          .updateTable("webhook_registration")
          .set({ old_secret: sql<string>`secret`, old_secret_until: oldUntil, secret })
          .where((eb) => eb.and({ ...ownedBy(tenant), id }))
          .returningAll()
          .executeTakeFirst(),
      ),
    /** Returns whether there was one. */
    remove: (tenant: Tenant, id: string, tx: Transaction): Effect.Effect<boolean, PortError> =>
      Effect.map(
        database.run(() =>
          db(tx)
            .deleteFrom("webhook_registration")
            .where((eb) => eb.and({ ...ownedBy(tenant), id }))
            .executeTakeFirst(),
        ),
        ({ numDeletedRows }) => numDeletedRows > 0n,
      ),
  }
}

/** The state that attempts change. */
const recording = (database: Database) => {
  const db = (tx?: Transaction) => database.queries<WebhookTables>(tx)
  return {
    /** Locks the webhook of an attempt, so that outcomes are recorded one after the other. */
    lock: (id: string, tx: Transaction): Effect.Effect<RegistrationRow | undefined, PortError> =>
      database.run(() =>
        db(tx)
          .selectFrom("webhook_registration")
          .selectAll()
          .where("id", "=", id)
          .forUpdate()
          .executeTakeFirst(),
      ),
    update: (
      id: string,
      set: Pick<RegistrationRow, "status" | "last_delivery_at" | "last_error" | "failing_since">,
      tx: Transaction,
    ): Effect.Effect<void, PortError> =>
      Effect.asVoid(
        database.run(() =>
          db(tx).updateTable("webhook_registration").set(set).where("id", "=", id).execute(),
        ),
      ),
  }
}

export const makeRegistrationRows = (database: Database) => ({
  ...reading(database),
  ...writing(database),
  ...recording(database),
})
