import { Effect } from "effect"
import type { PortError } from "../../../core/index.ts"
import { deleteChunks } from "../documents/chunk-rows.ts"
import { type Claim, readClaimed, type Superseded, updateClaimed } from "../documents/claim.ts"
import type { IngestFailure } from "../reading/document-reader.ts"
import type { IngestDeps } from "./ingest-deps.ts"
import { countFailed } from "./ingest-metrics.ts"
import { countsOf, markFile } from "./progress.ts"

/** waiting | extracting | embedding -> failed: of what was read, the counts stay. */
export const failDocument = (
  deps: IngestDeps,
  claim: Claim,
  { code, message }: Pick<IngestFailure, "code" | "message">,
): Effect.Effect<void, PortError | Superseded> =>
  Effect.gen(function* () {
    const failed = yield* deps.database.transaction((tx) =>
      Effect.gen(function* () {
        const row = yield* readClaimed(deps, claim, tx)
        const progress = { ...countsOf(row), code }
        yield* markFile(deps, row, { status: "failed", details: message, progress }, tx)
        yield* updateClaimed(deps, claim, row.state, { state: "failed" }, tx)
        yield* deps.vectors.remove(row.no, tx)
        yield* deleteChunks(deps, row.no, tx)
        return row
      }),
    )
    countFailed(deps, code)
    deps.log.info("retrieval.file_failed", "a knowledge file could not be processed", {
      file: failed.file_id,
      code,
    })
  })
