import { Effect } from "effect"
import type { FileObserver, JobHandler, WhenStarted } from "../../../core/index.ts"
import { insertDocument, removeDocument } from "../documents/document-rows.ts"
import type { Settings } from "../settings.ts"
import { tryAgain } from "./failure.ts"
import type { IngestDeps } from "./ingest-deps.ts"
import { runDocument } from "./run-document.ts"
import { type IngestJob, ingestTerms, isLongFile, type Lane, sendIngest } from "./send-job.ts"

type Slots = Pick<Settings, "ingestsAtOnce" | "longIngestsAtOnce" | "leaseMs">

/** One job reads, divides and embeds one file, or moves it to another space. */
const handlerOf = (
  lane: Lane,
  started: WhenStarted<IngestDeps>,
  { ingestsAtOnce, longIngestsAtOnce, leaseMs }: Slots,
): JobHandler<IngestJob> => ({
  ...ingestTerms[lane],
  concurrency: lane === "short" ? ingestsAtOnce : longIngestsAtOnce,
  leaseMs,
  run: (job) =>
    Effect.flatMap(
      Effect.mapError(started, ({ message }) => tryAgain(message)),
      (deps) => runDocument(deps, lane, job),
    ),
})

export const ingestHandlers = (
  started: WhenStarted<IngestDeps>,
  slots: Slots,
): readonly JobHandler<IngestJob>[] =>
  (["short", "long"] as const).map((lane) => handlerOf(lane, started, slots))

/** A knowledge file has its document and its job with it, or none of them. */
export const ingestObserver = (
  deps: Pick<IngestDeps, "database" | "queue" | "clock">,
): FileObserver => ({
  created: (file, tx) =>
    file.purpose === "knowledge"
      ? Effect.andThen(
          insertDocument(deps, file, tx),
          sendIngest(deps, file.tenant, isLongFile(file) ? "long" : "short", { file: file.id }, tx),
        )
      : Effect.void,
  removed: (tenant, id, tx) => removeDocument(deps, tenant, id, tx),
})
