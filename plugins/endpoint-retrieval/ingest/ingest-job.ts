import { Effect, Schema } from "effect"
import type {
  FileObserver,
  JobHandler,
  PortError,
  Queue,
  Tenant,
  Transaction,
  WhenStarted,
} from "../../../core/index.ts"
import { countUnfinished, insertDocument, removeDocument } from "../documents/document-rows.ts"
import type { Settings } from "../settings.ts"
import { tryAgain } from "./failure.ts"
import type { IngestDeps } from "./ingest-deps.ts"
import { runDocument } from "./run-document.ts"

const IngestJob = Schema.Struct({ file: Schema.String })
type IngestJob = typeof IngestJob.Type

/**
 * The part of the job handler that a sender needs. `attempts` counts crashes and outages, too, so
 * it ends nothing: a file has a deadline, and a number of runs that may break off.
 */
export const ingestTerms = {
  name: "retrieval-ingest",
  codec: IngestJob,
  attempts: 100_000,
} as const

/** For sending: only workers run jobs. */
const sender: JobHandler<IngestJob> = {
  ...ingestTerms,
  concurrency: 1,
  leaseMs: 1,
  run: () => Effect.void,
}

/** One job reads, divides and embeds one file, or moves it to another space. */
export const ingestHandler = (
  started: WhenStarted<IngestDeps>,
  { ingestsAtOnce, leaseMs }: Pick<Settings, "ingestsAtOnce" | "leaseMs">,
): JobHandler<IngestJob> => ({
  ...ingestTerms,
  concurrency: ingestsAtOnce,
  leaseMs,
  run: ({ file }) =>
    Effect.flatMap(
      Effect.mapError(started, ({ message }) => tryAgain(message)),
      (deps) => runDocument(deps, file),
    ),
})

/** Tenants with more files than this share the last place. */
const mostCounted = 1_000
/** Files that move to another space wait for those that were never searched. */
const reindexPriority = -mostCounted - 1

const send = (queue: Queue, file: string, priority: number, tx?: Transaction) =>
  queue.send(sender, { file }, { key: file, priority }, tx)

/**
 * The more files of the tenant wait, the later is the next: the first one of a tenant goes before
 * the hundredth of another.
 */
export const sendIngest = (
  deps: Pick<IngestDeps, "database" | "queue">,
  tenant: Tenant,
  file: string,
  tx?: Transaction,
): Effect.Effect<void, PortError> =>
  Effect.flatMap(countUnfinished(deps, tenant, mostCounted, tx), (waiting) =>
    send(deps.queue, file, -waiting, tx),
  )

export const sendReindex = (
  { queue }: Pick<IngestDeps, "queue">,
  file: string,
): Effect.Effect<void, PortError> => send(queue, file, reindexPriority)

/** A knowledge file has its document and its job with it, or none of them. */
export const ingestObserver = (
  deps: Pick<IngestDeps, "database" | "queue" | "clock">,
): FileObserver => ({
  created: (file, tx) =>
    file.purpose === "knowledge"
      ? Effect.andThen(insertDocument(deps, file, tx), sendIngest(deps, file.tenant, file.id, tx))
      : Effect.void,
  removed: (tenant, id, tx) => removeDocument(deps, tenant, id, tx),
})
