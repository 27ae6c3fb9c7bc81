import { Effect } from "effect"
import { sql } from "kysely"
import type { Database } from "../../../core/ports/database.ts"

export interface Entry {
  readonly id: string
  readonly amount: bigint
}

export interface Tables {
  readonly [table: string]: Entry
}

let made = 0

/** A fresh table `(id text primary key, amount bigint)`; returns its name. */
export const makeTable = (database: Database): Effect.Effect<string, unknown> => {
  made += 1
  const table = `contract_${made}`
  return database
    .run(() =>
      sql`create table ${sql.table(table)} (id text primary key, amount bigint not null)`.execute(
        database.queries(),
      ),
    )
    .pipe(Effect.as(table))
}

/** The ids in `table`, in order. */
export const idsIn = (
  database: Database,
  table: string,
): Effect.Effect<readonly string[], unknown> =>
  database
    .run(() => database.queries<Tables>().selectFrom(table).select("id").orderBy("id").execute())
    .pipe(Effect.map((rows) => rows.map((row) => row.id)))
