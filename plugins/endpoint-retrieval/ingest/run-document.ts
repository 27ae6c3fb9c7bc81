import { Cause, Effect, Option } from "effect"
import { type ApiError, type PortError, portFailure } from "../../../core/index.ts"
import { claimDocument, noteFailure, type Superseded, tenantOf } from "../documents/claim.ts"
import type { IngestFailure } from "../reading/document-reader.ts"
import type { DocumentRow } from "../tables.ts"
import { checkDeadline, modelIsOpen } from "./deadline.ts"
import { embedFile } from "./embed-file.ts"
import { failDocument } from "./fail-document.ts"
import { isPassing, maxFailures, tryAgain, unknownFailure } from "./failure.ts"
import type { IngestDeps } from "./ingest-deps.ts"
import { countReady } from "./ingest-metrics.ts"
import { readFile } from "./read-file.ts"
import { reindex } from "./reindex.ts"

type Work<A> = Effect.Effect<A, ApiError | PortError | IngestFailure | Superseded>

/** From where the last run has left off to `ready`. */
const ingest = (deps: IngestDeps, row: DocumentRow): Work<void> =>
  Effect.gen(function* () {
    yield* checkDeadline(deps, row)
    yield* modelIsOpen(deps, row)
    const file = yield* deps.files.find(tenantOf(row), row.file_id)
    // a deletion removes the document in the same transaction; an expired file is about to go
    if (!file) return
    const read = row.state === "embedding" ? row : yield* readFile(deps, row, file)
    const ready = yield* embedFile(deps, read)
    countReady(deps, ready)
    deps.log.info("retrieval.file_processed", "a knowledge file can be searched", {
      file: row.file_id,
      chunks: ready.chunks,
      tokens: Number(ready.tokens),
      ms: deps.clock.nowMs() - row.created_at.getTime(),
    })
  })

/** Tries again what may be over soon; after some runs that broke off otherwise, the file fails. */
const brokeOff = (
  deps: IngestDeps,
  row: DocumentRow,
  cause: Cause.Cause<ApiError | PortError>,
): Effect.Effect<never, PortError | IngestFailure | Superseded> =>
  Effect.gen(function* () {
    const error = Option.getOrUndefined(Cause.findErrorOption(cause))
    if (error && isPassing(error)) return yield* tryAgain(error.message, error)
    const failures = yield* noteFailure(deps, row)
    deps.log.warn("retrieval.run_broke_off", "work on a knowledge file broke off", {
      file: row.file_id,
      state: row.state,
      failures,
      cause: Cause.pretty(cause),
    })
    // a file that is searched already stays what it is
    if (failures >= maxFailures && row.state !== "ready") return yield* unknownFailure()
    return yield* tryAgain(error ? error.message : portFailure({}).message)
  })

const run = (deps: IngestDeps, row: DocumentRow): Work<void> =>
  (row.state === "ready" ? reindex(deps, row) : ingest(deps, row)).pipe(
    Effect.catchCause((cause): Work<void> => {
      if (Cause.hasInterruptsOnly(cause)) return Effect.interrupt
      const error = Option.getOrUndefined(Cause.findErrorOption(cause))
      if (error?._tag === "IngestFailure" || error?._tag === "Superseded") return Effect.fail(error)
      return brokeOff(deps, row, cause as Cause.Cause<ApiError | PortError>)
    }),
  )

/**
 * The job of one file: reads, divides and embeds it, or moves it to another space. Fails where the
 * queue should run it again; what the last run has committed stays.
 */
export const runDocument = (deps: IngestDeps, fileId: string): Effect.Effect<void, PortError> =>
  Effect.gen(function* () {
    const row = yield* claimDocument(deps, fileId)
    if (!row) return
    yield* run(deps, row).pipe(
      Effect.catchTag("IngestFailure", (failure) => failDocument(deps, row, failure)),
      Effect.catchTag("Superseded", () => Effect.void),
      Effect.catchTag("ApiError", ({ message }) => Effect.fail(tryAgain(message))),
    )
  })
