import { Effect } from "effect"
import type { ApiError, PortError } from "../../../core/index.ts"
import { type Superseded, tenantOf, updateClaimed } from "../documents/claim.ts"
import { changeSearched } from "../documents/tenant-version.ts"
import type { DocumentRow } from "../tables.ts"
import { currentSpace } from "./current-space.ts"
import { embedChunks, isSameSpace } from "./embed-chunks.ts"
import { spaceOfRow } from "./embed-file.ts"
import type { IngestDeps } from "./ingest-deps.ts"
import type { GiveWay } from "./turn.ts"

/**
 * Moves a ready document into the space of a model that came later. It stays in the old one, where
 * no query finds it, until all of its chunks are in the new one. It costs its owner nothing, who
 * has not asked for it.
 */
export const reindex = (
  deps: IngestDeps,
  row: DocumentRow,
  turn: GiveWay,
): Effect.Effect<void, ApiError | PortError | Superseded> =>
  Effect.gen(function* () {
    const wanted = yield* currentSpace(deps)
    if (isSameSpace(spaceOfRow(row), wanted)) return
    // of another length, they would be taken for those of the new space
    if (row.space === wanted.id)
      yield* deps.database.transaction((tx) =>
        Effect.andThen(
          updateClaimed(deps, row, "ready", { space: null, dimensions: null }, tx),
          deps.vectors.remove(row.no, tx),
        ),
      )
    const embedded = yield* embedChunks(deps, row, wanted, turn, (_, __, tx) =>
      updateClaimed(deps, row, "ready", {}, tx),
    )
    const space = embedded ?? wanted
    yield* deps.database.transaction((tx) =>
      Effect.gen(function* () {
        const set = { space: space.id, dimensions: space.dimensions, embedded: row.chunks }
        yield* updateClaimed(deps, row, "ready", set, tx)
        yield* deps.vectors.remove(row.no, tx, space)
        yield* changeSearched(deps, tenantOf(row), tx)
      }),
    )
    deps.log.info("retrieval.document_reindexed", "a file was moved into the model's space", {
      file: row.file_id,
      chunks: row.chunks,
    })
  })
