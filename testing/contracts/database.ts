import { Effect } from "effect"
import { afterAll, beforeAll, describe, it } from "vitest"
import type { Database } from "../../core/ports/database.ts"
import { migrationCases } from "./database/migrations.ts"
import { recoveryCases } from "./database/recovery.ts"
import { transactionCases } from "./database/transactions.ts"
import { valueCases } from "./database/values.ts"

export interface OpenedDatabase {
  readonly database: Database
  /** The same database over connections of its own, as another process would have it. */
  readonly second: Database
  close(): Promise<void>
}

export type DatabaseCases = Readonly<
  Record<string, (opened: Omit<OpenedDatabase, "close">) => Effect.Effect<void, unknown>>
>

/**
 * What every Database does, beyond what its interface says:
 *
 * - A transaction in which a statement failed can't commit, also when the failure was caught: it
 *   fails with PortError.
 * - The handle of a transaction that has ended is refused.
 * - `bigint` and `count(*)` arrive as bigint, `numeric` and `date` as text; the session's time zone
 *   is UTC.
 * - All migrations of one `migrate` run in one transaction; the error names the one that failed.
 * - `PortError.cause` is the driver's error with its SQLSTATE as `code`.
 * - A lost connection, and a database that can't be reached, is `why: "unavailable"`; a failure of
 *   the statement has no `why`.
 *
 * `open` gives an empty database, once for the suite.
 */
export const databaseContract = (name: string, open: () => Promise<OpenedDatabase>): void => {
  describe(`database contract: ${name}`, () => {
    let opened: OpenedDatabase
    beforeAll(async () => {
      opened = await open()
    })
    afterAll(() => opened?.close())
    const run = (cases: DatabaseCases) => {
      for (const [title, work] of Object.entries(cases))
        it(title, () => Effect.runPromise(work(opened)))
    }
    describe("transactions", () => run(transactionCases))
    describe("values", () => run(valueCases))
    describe("migrations", () => run(migrationCases))
    describe("recovery", () => run(recoveryCases))
  })
}
