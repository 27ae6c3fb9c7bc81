import { Effect } from "effect"
import type { PortError, StoredFile, Tenant, Transaction } from "../../../core/index.ts"
import type { RetrievalDeps } from "../deps.ts"
import type { RetrievalTables } from "../tables.ts"

/** Begins the index of a new file, in the transaction that creates the file. */
export const insertDocument = (
  { database }: RetrievalDeps,
  { id, tenant, keyId, metadata, createdMs, expiresMs }: StoredFile,
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
          created_at: new Date(createdMs),
          expires_at: new Date(expiresMs),
          removed_at: null,
        })
        .execute(),
    ),
  )

/** Takes a deleted file out of all searches; its rows are swept later. Idempotent. */
export const removeDocument = (
  { database, clock }: RetrievalDeps,
  { account, mode }: Tenant,
  fileId: string,
  tx: Transaction,
): Effect.Effect<void, PortError> =>
  Effect.asVoid(
    database.run(() =>
      database
        .queries<RetrievalTables>(tx)
        .updateTable("retrieval_document")
        .set({ state: "removed", removed_at: new Date(clock.nowMs()) })
        .where("file_id", "=", fileId)
        .where("account", "=", account)
        .where("mode", "=", mode)
        .where("state", "!=", "removed")
        .execute(),
    ),
  )
