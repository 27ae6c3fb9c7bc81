import type { Effect } from "effect"
import type { Kysely, Migration } from "kysely"
import type { PortError } from "../errors.ts"
import type { Transaction } from "./transaction.ts"

export type Migrations = Readonly<Record<string, Migration>>

/** PostgreSQL 15 or newer. Time is always a parameter, never `now()` in SQL. */
export interface Database {
  /**
   * Whether no other server can work on it at the same time, and it is kept in this deployment's
   * data folder. Absent: others may.
   */
  readonly isExclusive?: boolean
  /** Commits when `body` succeeds; rolls back when it fails or is interrupted. */
  transaction<A, E>(body: (tx: Transaction) => Effect.Effect<A, E>): Effect.Effect<A, E | PortError>
  /** The query builder, on the pool or in `tx`. `Tables` are the calling plugin's own. */
  queries<Tables>(tx?: Transaction): Kysely<Tables>
  /** Runs a promise of Kysely. Not interruptible: the query ends first. */
  run<A>(query: () => Promise<A>): Effect.Effect<A, PortError>
  /**
   * Runs `work` on one connection of its own, without time limits and past any pooler: for what
   * belongs to a session, such as its advisory locks.
   */
  session<Tables, A>(work: (db: Kysely<Tables>) => Promise<A>): Effect.Effect<A, PortError>
  /**
   * Brings a plugin's own tables up to date, with one migration table per plugin, `<plugin>_migration`
   * (what no name has in SQL is `_`). Returns the names of the migrations that ran. Safe to call
   * from several processes at once.
   */
  migrate(plugin: string, migrations: Migrations): Effect.Effect<readonly string[], PortError>
}
