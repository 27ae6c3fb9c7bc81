import { Cause, Effect, Option } from "effect"
import { type ApiError, type PortError, portFailure } from "../../../core/index.ts"
import { claimDocument, noteFailure, type Superseded, tenantOf } from "../documents/claim.ts"
import { findDocument } from "../documents/document-rows.ts"
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
import {
  handOver,
  type IngestJob,
  isLongFile,
  isLongText,
  type Lane,
  sendIngest,
  sendReindex,
} from "./send-job.ts"
import { type GiveWay, giveWay } from "./turn.ts"

type Work<A> = Effect.Effect<A, ApiError | PortError | IngestFailure | Superseded>

/** From where the last run has left off to `ready`, or to the job of a long file. */
const ingest = (deps: IngestDeps, row: DocumentRow, lane: Lane, turn: GiveWay): Work<void> =>
  Effect.gen(function* () {
    yield* checkDeadline(deps, row)
    yield* modelIsOpen(deps, row)
    const file = yield* deps.files.find(tenantOf(row), row.file_id)
    // a deletion removes the document in the same transaction; an expired file is about to go
    if (!file) return
    const read = row.state === "embedding" ? row : yield* readFile(deps, row, file)
    if (lane === "short" && isLongText(read)) return yield* handOver(deps, read, false)
    const ready = yield* embedFile(deps, read, turn)
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

const run = (deps: IngestDeps, row: DocumentRow, lane: Lane, { again }: IngestJob): Work<void> => {
  const turn = giveWay(deps, again === true)
  return (row.state === "ready" ? reindex(deps, row, turn) : ingest(deps, row, lane, turn)).pipe(
    Effect.catchCause((cause): Work<void> => {
      if (Cause.hasInterruptsOnly(cause)) return Effect.interrupt
      const error = Option.getOrUndefined(Cause.findErrorOption(cause))
      if (error?._tag === "IngestFailure" || error?._tag === "Superseded") return Effect.fail(error)
      return brokeOff(deps, row, cause as Cause.Cause<ApiError | PortError>)
    }),
  )
}

/**
 * Sends a long file to its lane: it is not known to be one where its job was lost, or where this
 * job runs again after it handed the file over. Looked up before the claim, which would end that of
 * the other job. Returns whether it did.
 */
const isSentOn = (deps: IngestDeps, fileId: string): Effect.Effect<boolean, PortError> =>
  Effect.gen(function* () {
    const row = yield* findDocument(deps, fileId)
    if (!row || row.state === "failed" || row.state === "removed") return false
    if (row.state === "ready") {
      if (isLongText(row)) yield* sendReindex(deps, row)
      return isLongText(row)
    }
    const file = yield* deps.files.find(tenantOf(row), fileId)
    const isLong = isLongText(row) || (file !== undefined && isLongFile(file))
    if (isLong) yield* sendIngest(deps, tenantOf(row), "long", { file: fileId })
    return isLong
  })

/**
 * The job of one file: reads, divides and embeds it, or moves it to another space. Fails where the
 * queue should run it again; what the last run has committed stays.
 */
export const runDocument = (
  deps: IngestDeps,
  lane: Lane,
  job: IngestJob,
): Effect.Effect<void, PortError> =>
  Effect.gen(function* () {
    if (lane === "short" && (yield* isSentOn(deps, job.file))) return
    const row = yield* claimDocument(deps, job.file)
    if (!row) return
    yield* run(deps, row, lane, job).pipe(
      Effect.catchTag("IngestFailure", (failure) => failDocument(deps, row, failure)),
      Effect.catchTag("Superseded", () => Effect.void),
      Effect.catchTag("ApiError", ({ message }) => Effect.fail(tryAgain(message))),
    )
  })
