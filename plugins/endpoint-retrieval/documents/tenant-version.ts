import { Effect } from "effect"
import { sql } from "kysely"
import type { PortError, Tenant, Transaction } from "../../../core/index.ts"
import type { RetrievalDeps } from "../deps.ts"

/** Says to all caches, when it commits, that other chunks of the tenant are searched than before. */
export const changeSearched = (
  { database }: Pick<RetrievalDeps, "database">,
  { account, mode }: Tenant,
  tx: Transaction,
): Effect.Effect<void, PortError> =>
  Effect.asVoid(
    database.run(() =>
      sql`
        INSERT INTO retrieval_tenant (account, mode, version) VALUES (${account}, ${mode}, 1)
        ON CONFLICT (account, mode) DO UPDATE SET version = retrieval_tenant.version + 1`.execute(
        database.queries(tx),
      ),
    ),
  )
