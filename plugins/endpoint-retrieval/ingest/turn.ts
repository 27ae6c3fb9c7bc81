import { Effect } from "effect"
import type { PortError } from "../../../core/index.ts"
import { Superseded, tenantOf } from "../documents/claim.ts"
import { othersUnfinished } from "../documents/document-rows.ts"
import type { DocumentRow } from "../tables.ts"
import type { IngestDeps } from "./ingest-deps.ts"
import { handOver, isLongText } from "./send-job.ts"

/** The time of embedding at once: to give way and to come back costs only some statements. */
const turnMs = 30_000

/** Asked between two batches. Fails as superseded where the document went back to the queue. */
export type GiveWay = (
  row: DocumentRow,
  sinceMs: number,
) => Effect.Effect<void, PortError | Superseded>

/**
 * A long document does not keep its slot until it is embedded while other tenants have files: after
 * a while it goes back to the queue, where those with fewer files, or that wait for longer, are
 * before it. What is embedded stays.
 */
export const giveWay =
  (deps: IngestDeps, again: boolean): GiveWay =>
  (row, sinceMs) =>
    Effect.gen(function* () {
      if (!isLongText(row) || deps.clock.nowMs() - sinceMs < turnMs) return
      if (!(yield* othersUnfinished(deps, tenantOf(row)))) return
      yield* handOver(deps, row, !again)
      return yield* new Superseded()
    })
