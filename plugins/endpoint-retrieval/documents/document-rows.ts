import { Effect } from "effect"
import { sql } from "kysely"
import type { PortError, StoredFile, Tenant, Transaction } from "../../../core/index.ts"
import type { RetrievalDeps } from "../deps.ts"
import type { DocumentRow, RetrievalTables } from "../tables.ts"
import { changeSearched } from "./tenant-version.ts"

/**
 * Begins the index of a file, in the transaction that creates it. Its time begins now: the file may
 * be older than this plugin.
 */
export const insertDocument = (
  { database, clock }: Pick<RetrievalDeps, "database" | "clock">,
  { id, tenant, keyId, metadata, expiresMs }: StoredFile,
  tx: Transaction,
): Effect.Effect<void, PortError> =>
  Effect.asVoid(
    database.run(() =>
      database
        .queries<RetrievalTables>(tx)
        .insertInto("retrieval_document")
        .values({
          file_id: id,
          account: tenant.account,
          mode: tenant.mode,
          key_id: keyId ?? null,
          state: "waiting",
          epoch: 0,
          failures: 0,
          metadata,
          pages: null,
          characters: 0n,
          chunks: 0,
          embedded: 0,
          tokens: 0n,
          cost_micros: 0n,
          space: null,
          dimensions: null,
          created_at: new Date(clock.nowMs()),
          expires_at: new Date(expiresMs),
          removed_at: null,
        })
        .onConflict((conflict) => conflict.column("file_id").doNothing())
        .execute(),
    ),
  )

/** Takes a deleted file out of all searches; its rows are swept later. Idempotent. */
export const removeDocument = (
  deps: Pick<RetrievalDeps, "database" | "clock">,
  tenant: Tenant,
  fileId: string,
  tx: Transaction,
): Effect.Effect<void, PortError> => {
  const { database, clock } = deps
  const removed = database.run(() =>
    database
      .queries<RetrievalTables>(tx)
      .updateTable("retrieval_document")
      .set({ state: "removed", removed_at: new Date(clock.nowMs()) })
      .where("file_id", "=", fileId)
      .where("account", "=", tenant.account)
      .where("mode", "=", tenant.mode)
      .where("state", "!=", "removed")
      .executeTakeFirst(),
  )
  return Effect.flatMap(removed, ({ numUpdatedRows }) =>
    numUpdatedRows > 0n ? changeSearched(deps, tenant, tx) : Effect.void,
  )
}

/** Documents of the tenant that are not ready yet, counted up to `most`. */
export const countUnfinished = (
  { database }: Pick<RetrievalDeps, "database">,
  { account, mode }: Tenant,
  most: number,
  tx?: Transaction,
): Effect.Effect<number, PortError> =>
  Effect.map(
    database.run(() =>
      sql<{ count: number }>`
        SELECT count(*)::int AS count FROM (
          SELECT FROM retrieval_document
          WHERE account = ${account} AND mode = ${mode} AND state IN ('waiting', 'extracting', 'embedding') LIMIT ${most}
        ) AS unfinished`.execute(database.queries(tx)),
    ),
    ({ rows }) => rows[0]?.count ?? 0,
  )

/** Whether any other tenant has documents that are not ready yet. */
export const othersUnfinished = (
  { database }: Pick<RetrievalDeps, "database">,
  { account, mode }: Tenant,
): Effect.Effect<boolean, PortError> =>
  Effect.map(
    database.run(() =>
      sql<{ found: boolean }>`
        SELECT EXISTS (
          SELECT FROM retrieval_document WHERE state IN ('waiting', 'extracting', 'embedding')
          AND (account, mode) <> (${account}, ${mode})) AS found`.execute(database.queries()),
    ),
    ({ rows }) => rows[0]?.found ?? false,
  )

export const findDocument = (
  { database }: Pick<RetrievalDeps, "database">,
  fileId: string,
): Effect.Effect<DocumentRow | undefined, PortError> =>
  database.run(() =>
    database
      .queries<RetrievalTables>()
      .selectFrom("retrieval_document")
      .selectAll()
      .where("file_id", "=", fileId)
      .executeTakeFirst(),
  )
