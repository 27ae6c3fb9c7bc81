import { Effect } from "effect"
import type { ApiError, PortError } from "../../../core/index.ts"
import { type Superseded, tenantOf, updateClaimed } from "../documents/claim.ts"
import { changeSearched } from "../documents/tenant-version.ts"
import type { IngestFailure } from "../reading/document-reader.ts"
import type { DocumentRow } from "../tables.ts"
import type { VectorSpace } from "../vectors/vector-store.ts"
import { checkDeadline } from "./deadline.ts"
import { embedChunks, isSameSpace } from "./embed-chunks.ts"
import type { IngestDeps } from "./ingest-deps.ts"
import { type PaidIngest, paidIngest } from "./paid-ingest.ts"
import { countsOf, markFile, progressOf } from "./progress.ts"
import type { GiveWay } from "./turn.ts"

export const spaceOfRow = ({
  space,
  dimensions,
}: Pick<DocumentRow, "space" | "dimensions">): VectorSpace | undefined =>
  space === null || dimensions === null ? undefined : { id: space, dimensions }

/** Embeds what has no vector yet, and counts it in the document and in its file. */
const embedRest = (deps: IngestDeps, begun: DocumentRow, turn: GiveWay) => {
  let row = begun
  return embedChunks(deps, row, spaceOfRow(row), turn, (space, count, tx) =>
    Effect.gen(function* () {
      yield* checkDeadline(deps, row)
      const isSame = isSameSpace(spaceOfRow(row), space)
      const before = isSame ? row.embedded : 0
      const now = { embedded: before + count, space: space.id, dimensions: space.dimensions }
      const progress = progressOf("embedding", { ...row, ...now })
      yield* markFile(deps, row, { status: "processing", progress }, tx)
      const next = yield* updateClaimed(deps, row, "embedding", now, tx)
      // the model changed since the last run
      if (!isSame) yield* deps.vectors.remove(row.no, tx)
      row = next
    }),
  )
}

/**
 * embedding -> ready: from this commit on the document is searched, its file is `processed`, and
 * its tokens are paid.
 */
const finish = (deps: IngestDeps, row: DocumentRow, { settlement }: PaidIngest) => {
  const { database, vectors, billing } = deps
  return database.transaction((tx) =>
    Effect.gen(function* () {
      yield* markFile(deps, row, { status: "processed", progress: countsOf(row) }, tx)
      const set = { state: "ready" as const, cost_micros: settlement.costMicros }
      const ready = yield* updateClaimed(deps, row, "embedding", set, tx)
      yield* vectors.remove(row.no, tx, spaceOfRow(ready))
      yield* changeSearched(deps, tenantOf(row), tx)
      // takes the account's lock, so it comes last
      yield* billing.settle([settlement], tx)
      return ready
    }),
  )
}

/** Gives the hold back at once; where that fails, the next claim does it. */
const voided = ({ billing }: IngestDeps, { settlement }: PaidIngest) =>
  Effect.ignore(
    billing.settle([{ ...settlement, outcome: "voided", costMicros: 0n, httpStatus: 500 }]),
  )

/** A hold does not last as long as many hours of work: it is made anew for the settlement. */
const heldStill = (deps: IngestDeps, row: DocumentRow, held: PaidIngest) =>
  deps.clock.nowMs() < held.heldUntilMs
    ? Effect.succeed(held)
    : Effect.andThen(voided(deps, held), paidIngest(deps, row, Effect.void))

export const embedFile = (
  deps: IngestDeps,
  row: DocumentRow,
  turn: GiveWay,
): Effect.Effect<DocumentRow, ApiError | PortError | IngestFailure | Superseded> =>
  Effect.gen(function* () {
    const held = yield* paidIngest(deps, row, Effect.asVoid(embedRest(deps, row, turn)))
    const paid = yield* heldStill(deps, row, held)
    return yield* Effect.tapError(finish(deps, row, paid), (error) =>
      error._tag === "Superseded" ? voided(deps, paid) : Effect.void,
    )
  })
