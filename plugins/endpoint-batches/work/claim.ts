import { Effect } from "effect"
import { sql } from "kysely"
import type { PortError } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import type { BatchRow, BatchTables } from "../tables.ts"
import type { Candidate } from "./choose.ts"

/** A batch stays `validating` for a moment, so that who fetches it right after its creation sees that. */
const restShare = 5

/** The oldest of each tenant, up to `ofEach`, in order. */
export const waitingBatches = (
  { database, clock, limits }: BatchDeps,
  ofEach: number,
): Effect.Effect<readonly Candidate[], PortError> => {
  const now = new Date(clock.nowMs())
  const query = sql<Candidate>`
    SELECT id, tenant FROM (
      SELECT id, seq, mode || ' ' || account AS tenant, row_number() OVER (PARTITION BY account, mode ORDER BY seq) AS place FROM batches_batch
      WHERE ended_at IS NULL AND (lease_until IS NULL OR lease_until <= ${now}) AND created_at <= ${new Date(now.getTime() - limits.pollMs / restShare)}
    ) waiting WHERE place <= ${ofEach} ORDER BY seq`
  return Effect.map(
    database.run(() => query.execute(database.queries<BatchTables>())),
    ({ rows }) => rows,
  )
}

/** From here on nobody else changes it, and what its last worker had begun costs nothing. Undefined: somebody was faster. */
export const claimBatch = (
  { database, billing, clock, limits }: BatchDeps,
  id: string,
): Effect.Effect<BatchRow | undefined, PortError> =>
  database.transaction((tx) =>
    Effect.gen(function* () {
      const now = new Date(clock.nowMs())
      const row = yield* database.run(() =>
        database
          .queries<BatchTables>(tx)
          .updateTable("batches_batch")
          .set((eb) => ({
            epoch: eb("epoch", "+", 1),
            lease_until: new Date(now.getTime() + limits.leaseMs),
          }))
          .where("id", "=", id)
          .where("ended_at", "is", null)
          .where((eb) => eb.or([eb("lease_until", "is", null), eb("lease_until", "<=", now)]))
          .returningAll()
          .executeTakeFirst(),
      )
      if (row) yield* billing.voidChildren(id, tx)
      return row
    }),
  )
