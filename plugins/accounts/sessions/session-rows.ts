import { Effect } from "effect"
import { type RawBuilder, sql } from "kysely"
import type { Database, PortError, Transaction } from "../../../core/index.ts"
import type { AccountRows } from "../account-rows.ts"
import type { Audit } from "../audit/audit.ts"
import type { AccountsTables, AccountTable, SessionTable } from "../tables.ts"

/** Beginning one more ends the account's session that was seen least recently. */
export const maxSessions = 100
const rowsPerStatement = 2_000

/** Why a view of an administrator ended, for the audit log. */
type Reason = "left" | "replaced" | "session_ended" | "account_changed" | "expired"

/** Queries on `accounts_session`. An ended session has no row. */
export interface SessionRows {
  open(id: string): Effect.Effect<SessionTable | undefined, PortError>
  /** Keeps the session from ending until `tx` has. */
  keep(id: string, tx: Transaction): Effect.Effect<SessionTable | undefined, PortError>
  /** The account must be locked. Returns the ids of sessions that ended to make room. */
  insert(row: SessionTable, tx: Transaction): Effect.Effect<readonly string[], PortError>
  /** Returns the owner's sessions, the one that was seen last first. */
  list(account: AccountTable, at: Date): Effect.Effect<readonly SessionTable[], PortError>
  /** Returns the ids of what ended: the session, and what was begun in it; none: it is not there. */
  end(account: string, id: string, tx: Transaction): Effect.Effect<readonly string[], PortError>
  /** Ends what an administrator sees of accounts: in one session of theirs, by default in all. */
  endViews(
    views: { readonly actor: string; readonly parent?: string },
    reason: Reason,
    tx: Transaction,
  ): Effect.Effect<readonly string[], PortError>
  /** Ends an account's sessions, and what it sees of other accounts. */
  endAll(account: string, tx: Transaction): Effect.Effect<readonly string[], PortError>
  /** Deletes what is over; returns the number of rows. */
  sweep(at: Date): Effect.Effect<number, PortError>
  /** Moves `last_seen_at` forward. Skips rows that another server is writing. */
  markUsed(uses: ReadonlyMap<string, number>): Effect.Effect<void, PortError>
}

type Condition = RawBuilder<boolean>

/** Deletes rows, and records the end of each view of an administrator. */
const makeEnding =
  (database: Database, audit: Audit) => (which: Condition, reason: Reason, tx: Transaction) =>
    Effect.gen(function* () {
      const ended = yield* database.run(() =>
        database
          .queries<AccountsTables>(tx)
          .deleteFrom("accounts_session")
          .where(which)
          .returning(["id", "account_id", "actor_id"])
          .execute(),
      )
      for (const { id, account_id, actor_id } of ended)
        if (actor_id !== null)
          yield* audit.record(
            {
              actor: actor_id,
              action: "account.impersonate_end",
              target: account_id,
              after: { session: id, reason },
            },
            tx,
          )
      return ended.map(({ id }) => id)
    })

const markUsed = (database: Database) => (uses: ReadonlyMap<string, number>) =>
  Effect.asVoid(
    database.run(() =>
      sql`
        WITH due AS (
          SELECT s.id, use.at FROM accounts_session s JOIN unnest(${[...uses.keys()]}::text[], ${[...uses.values()].map((ms) => new Date(ms))}::timestamptz[]) AS use (id, at) ON use.id = s.id
          WHERE s.last_seen_at < use.at
          FOR UPDATE OF s SKIP LOCKED)
        UPDATE accounts_session SET last_seen_at = due.at FROM due WHERE accounts_session.id = due.id`.execute(
        database.queries<AccountsTables>(),
      ),
    ),
  )

/** Too many sessions: first one of an earlier epoch goes; each with what was begun in it. */
const surplus = ({ account_id }: SessionTable): Condition => {
  const epoch = sql`(SELECT session_epoch FROM accounts_account WHERE id = ${account_id})`
  const ids = sql`(SELECT id FROM accounts_session WHERE account_id = ${account_id} AND actor_id IS NULL
    ORDER BY epoch = ${epoch} DESC, last_seen_at DESC, created_at DESC, id OFFSET ${maxSessions})`
  return sql<boolean>`(id IN ${ids} OR parent_id IN ${ids})`
}

const overAt = (at: Date): Condition => sql<boolean>`id IN (
  SELECT id FROM accounts_session WHERE expires_at <= ${at}
  LIMIT ${rowsPerStatement} FOR UPDATE SKIP LOCKED)`

export const makeSessionRows = (database: Database, audit: Audit): SessionRows => {
  const from = (tx?: Transaction) =>
    database.queries<AccountsTables>(tx).selectFrom("accounts_session").selectAll()
  const ending = makeEnding(database, audit)
  return {
    open: (id) => database.run(() => from().where("id", "=", id).executeTakeFirst()),
    keep: (id, tx) =>
      database.run(() => from(tx).where("id", "=", id).forKeyShare().executeTakeFirst()),
    insert: (row, tx) =>
      Effect.andThen(
        database.run(() =>
          database.queries<AccountsTables>(tx).insertInto("accounts_session").values(row).execute(),
        ),
        ending(surplus(row), "session_ended", tx),
      ),
    list: ({ id, session_epoch }, at) =>
      database.run(() =>
        from()
          .where("account_id", "=", id)
          .where("actor_id", "is", null)
          .where("epoch", "=", session_epoch)
          .where("expires_at", ">", at)
          .orderBy("last_seen_at", "desc")
          .orderBy("created_at", "desc")
          .limit(maxSessions)
          .execute(),
      ),
    end: (account, id, tx) =>
      ending(
        sql`id = ${id} AND account_id = ${account} AND actor_id IS NULL OR parent_id = ${id} AND actor_id = ${account}`,
        "session_ended",
        tx,
      ),
    endViews: ({ actor, parent }, reason, tx) =>
      ending(
        parent === undefined
          ? sql`actor_id = ${actor}`
          : sql`actor_id = ${actor} AND parent_id = ${parent}`,
        reason,
        tx,
      ),
    endAll: (account, tx) =>
      ending(sql`account_id = ${account} OR actor_id = ${account}`, "account_changed", tx),
    sweep: (at) =>
      Effect.gen(function* () {
        for (let total = 0; ; ) {
          const ended = yield* database.transaction((tx) => ending(overAt(at), "expired", tx))
          total += ended.length
          if (ended.length < rowsPerStatement) return total
        }
      }),
    markUsed: markUsed(database),
  }
}

/**
 * The accounts, whose changes end what they forbid, in the same transaction: a new epoch all
 * sessions, the end of an administrator's role what that administrator sees of others.
 */
export const endingSessions = (accounts: AccountRows, sessions: SessionRows): AccountRows => ({
  ...accounts,
  change: (id, changes, tx) =>
    Effect.tap(accounts.change(id, changes, tx), () => {
      if (changes.session_epoch !== undefined) return sessions.endAll(id, tx)
      const isBarred = changes.suspended_at || changes.role === "user"
      return isBarred ? sessions.endViews({ actor: id }, "account_changed", tx) : Effect.void
    }),
})
