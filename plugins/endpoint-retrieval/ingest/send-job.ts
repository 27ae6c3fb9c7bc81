import { Effect, Schema } from "effect"
import type { JobHandler, PortError, StoredFile, Tenant, Transaction } from "../../../core/index.ts"
import { type Superseded, tenantOf, updateClaimed } from "../documents/claim.ts"
import { countUnfinished } from "../documents/document-rows.ts"
import type { DocumentRow } from "../tables.ts"
import type { IngestDeps } from "./ingest-deps.ts"

/** Long files have job slots of their own, so that short ones never wait for them. */
export type Lane = "short" | "long"

/** Ids of files have no such character. */
const againMark = "+"

const IngestJob = Schema.Struct({
  file: Schema.String,
  /** It was sent by a job of the same lane, which gave way. */
  again: Schema.optionalKey(Schema.Boolean),
})
export type IngestJob = typeof IngestJob.Type

/**
 * The part of the job handlers that a sender needs. `attempts` counts crashes and outages, too, so
 * it ends nothing: a file has a deadline, and a number of runs that may break off.
 */
export const ingestTerms = {
  short: { name: "retrieval-ingest", codec: IngestJob, attempts: 100_000 },
  long: { name: "retrieval-ingest-long", codec: IngestJob, attempts: 100_000 },
} as const

/** For sending: only workers run jobs. */
const sender = (lane: Lane): JobHandler<IngestJob> => ({
  ...ingestTerms[lane],
  concurrency: 1,
  leaseMs: 1,
  run: () => Effect.void,
})

/** About 200,000 characters, which take seconds to embed where the machine is slow. */
const mostShortChunks = 256
const mostShortBytes = 1_000_000

export const isLongText = ({ chunks }: Pick<DocumentRow, "chunks">): boolean =>
  chunks > mostShortChunks

/** To read many bytes may take a minute, however few chunks come of them. */
export const isLongFile = ({ bytes }: Pick<StoredFile, "bytes">): boolean => bytes > mostShortBytes

/** Tenants with more files than this share the last place. */
const mostCounted = 1_000
/** Files that move to another space wait for those that were never searched. */
const reindexPriority = -mostCounted - 1

const send = (
  { queue }: Pick<IngestDeps, "queue">,
  lane: Lane,
  job: IngestJob,
  priority: number,
  tx?: Transaction,
) =>
  queue.send(sender(lane), job, { key: job.again ? job.file + againMark : job.file, priority }, tx)

/**
 * The more files of the tenant wait, the later is the next: the first one of a tenant goes before
 * the hundredth of another.
 */
export const sendIngest = (
  deps: Pick<IngestDeps, "database" | "queue">,
  tenant: Tenant,
  lane: Lane,
  job: IngestJob,
  tx?: Transaction,
): Effect.Effect<void, PortError> =>
  Effect.flatMap(countUnfinished(deps, tenant, mostCounted, tx), (waiting) =>
    send(deps, lane, job, -waiting, tx),
  )

export const sendReindex = (
  deps: Pick<IngestDeps, "queue">,
  row: Pick<DocumentRow, "file_id" | "chunks">,
): Effect.Effect<void, PortError> =>
  send(deps, isLongText(row) ? "long" : "short", { file: row.file_id }, reindexPriority)

/**
 * Sends the job that goes on with a claimed document among the long ones: the caller's own job
 * ends. `again`: the caller's job is one of them, whose key is still held.
 */
export const handOver = (
  deps: IngestDeps,
  row: DocumentRow,
  again: boolean,
): Effect.Effect<void, PortError | Superseded> =>
  deps.database.transaction((tx) =>
    Effect.gen(function* () {
      yield* updateClaimed(deps, row, row.state, {}, tx)
      const job = { file: row.file_id, again }
      if (row.state === "ready") yield* send(deps, "long", job, reindexPriority, tx)
      else yield* sendIngest(deps, tenantOf(row), "long", job, tx)
    }),
  )

/** Returns those of the files whose job waits or runs, in any lane. */
export const withJobs = (
  { queue }: Pick<IngestDeps, "queue">,
  files: readonly string[],
): Effect.Effect<ReadonlySet<string>, PortError> =>
  Effect.gen(function* () {
    const again = files.map((file) => file + againMark)
    const held = [
      ...(yield* queue.held(ingestTerms.short, files)),
      ...(yield* queue.held(ingestTerms.long, [...files, ...again])),
    ]
    return new Set(held.map((key) => (key.endsWith(againMark) ? key.slice(0, -1) : key)))
  })
