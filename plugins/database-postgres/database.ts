import { Effect, Exit } from "effect"
import { type ControlledTransaction, Kysely, PostgresDialect, type PostgresPool } from "kysely"
import type { Database } from "../../core/ports/database.ts"
import type { Transaction } from "../../core/ports/transaction.ts"
import type { Failures } from "./health.ts"
import { migrateTables } from "./migrate.ts"

// biome-ignore lint/suspicious/noExplicitAny: the tables are those of the calling plugin
type AnyTables = any

/**
 * `Database` over a pool; `sessionPool` makes a pool of one connection without time limits, past
 * any pooler, for each migration and each session.
 */
export const makeDatabase = (
  pool: PostgresPool,
  sessionPool: () => PostgresPool,
  { asPortError }: Pick<Failures, "asPortError">,
  isExclusive: boolean,
): { readonly database: Database; readonly close: () => Promise<void> } => {
  const kysely = new Kysely<AnyTables>({ dialect: new PostgresDialect({ pool }) })
  const open = new WeakMap<Transaction, ControlledTransaction<AnyTables>>()

  /** Uninterruptible: a query ends before its Effect does, so that a rollback never overtakes it. */
  const query = <A>(promise: () => Promise<A>) =>
    Effect.uninterruptible(Effect.tryPromise({ try: promise, catch: asPortError }))
  const begin = async (): Promise<Transaction> => {
    const handle = Object.freeze({}) as Transaction
    open.set(handle, await kysely.startTransaction().execute())
    return handle
  }
  const unwrap = (handle: Transaction): ControlledTransaction<AnyTables> => {
    const transaction = open.get(handle)
    if (transaction === undefined)
      throw new Error("the transaction has ended, or belongs to another database")
    return transaction
  }
  const rollback = (transaction: ControlledTransaction<AnyTables>) =>
    // fails only when the connection is lost, in which case the server rolls back
    transaction
      .rollback()
      .execute()
      .catch(() => {})
  const commit = async (transaction: ControlledTransaction<AnyTables>) => {
    try {
      await transaction.commit().execute()
    } catch (error) {
      // Kysely returns the connection to the pool only after a successful commit
      await rollback(transaction)
      throw error
    }
  }
  const end = async (handle: Transaction, succeeded: boolean) => {
    const transaction = unwrap(handle)
    open.delete(handle)
    await (succeeded ? commit(transaction) : rollback(transaction))
  }

  const database: Database = {
    isExclusive,
    transaction: (body) =>
      Effect.acquireUseRelease(query(begin), body, (handle, exit) =>
        query(() => end(handle, Exit.isSuccess(exit))),
      ),
    queries: (handle) => (handle === undefined ? kysely : unwrap(handle)),
    run: query,
    session: (work) =>
      query(async () => {
        const db = new Kysely<AnyTables>({ dialect: new PostgresDialect({ pool: sessionPool() }) })
        return work(db).finally(() => db.destroy())
      }),
    migrate: (plugin, migrations) =>
      Object.keys(migrations).length === 0
        ? Effect.succeed([])
        : query(() => migrateTables(sessionPool(), plugin, migrations)),
  }
  return { database, close: () => kysely.destroy() }
}
