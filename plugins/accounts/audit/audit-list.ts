import { Effect } from "effect"
import { type Selectable, sql } from "kysely"
import type { Database, PortError } from "../../../core/index.ts"
import type { AccountsTables } from "../tables.ts"
import type { AuditTables } from "./make-audit.ts"

/** A row; JSON columns are parsed. */
export type AuditRow = Selectable<AuditTables["accounts_audit"]>

export interface AuditFilter {
  /** Each: one of these texts. */
  readonly actor?: readonly string[] | undefined
  readonly action?: readonly string[] | undefined
  readonly target?: readonly string[] | undefined
  readonly from?: Date | undefined
  /** Exclusive. */
  readonly to?: Date | undefined
}

/** The sort key of an entry: time, then `seq` within a millisecond. */
export type AuditPlace = Pick<AuditRow, "created_at" | "seq">

export interface AuditList {
  /** Newest first; only entries older than `before`. */
  list(
    filter: AuditFilter,
    limit: number,
    before?: AuditPlace,
  ): Effect.Effect<readonly AuditRow[], PortError>
  /** Returns the e-mail addresses of the accounts among these ids. */
  emails(ids: readonly string[]): Effect.Effect<ReadonlyMap<string, string>, PortError>
  place(id: string): Effect.Effect<AuditPlace | undefined, PortError>
}

export const makeAuditList = (database: Database): AuditList => {
  const entries = () => database.queries<AuditTables>().selectFrom("accounts_audit")
  return {
    list: ({ from, to, ...texts }, limit, before) =>
      database.run(() => {
        let query = entries()
          .selectAll()
          .orderBy("created_at", "desc")
          .orderBy("seq", "desc")
          .limit(limit)
        for (const column of ["actor", "action", "target"] as const) {
          const wanted = texts[column]
          if (wanted !== undefined) query = query.where(column, "in", wanted)
        }
        if (from) query = query.where("created_at", ">=", from)
        if (to) query = query.where("created_at", "<", to)
        if (before)
          query = query.where(
            sql<boolean>`(created_at, seq) < (${before.created_at}, ${before.seq})`,
          )
        return query.execute()
      }),
    emails: (ids) =>
      ids.length === 0
        ? Effect.succeed(new Map())
        : Effect.map(
            database.run(() =>
              database
                .queries<AccountsTables>()
                .selectFrom("accounts_account")
                .select(["id", "email"])
                .where("id", "in", ids)
                .execute(),
            ),
            (rows) => new Map(rows.map(({ id, email }) => [id, email])),
          ),
    place: (id) =>
      Effect.suspend(() =>
        database.run(() =>
          entries().select(["created_at", "seq"]).where("id", "=", id).executeTakeFirst(),
        ),
      ),
  }
}
