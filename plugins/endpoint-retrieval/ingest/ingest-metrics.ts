import { Effect } from "effect"
import { sql } from "kysely"
import type { PortError } from "../../../core/index.ts"
import type { IngestFailure } from "../reading/document-reader.ts"
import type { DocumentRow } from "../tables.ts"
import type { IngestDeps } from "./ingest-deps.ts"

type Deps = Pick<IngestDeps, "metrics">

const fileCounter = ({ metrics }: Deps) =>
  metrics.counter(
    "rakit_ingest_files_total",
    "Knowledge files that have ended, by outcome: processed, or the code of the failure.",
    ["outcome"],
  )
const chunkCounter = ({ metrics }: Deps) =>
  metrics.counter("rakit_ingest_chunks_total", "Chunks of knowledge files that were processed.")
const tokenCounter = ({ metrics }: Deps) =>
  metrics.counter("rakit_ingest_tokens_total", "Tokens of knowledge files that were processed.")
const durations = ({ metrics }: Deps) =>
  metrics.histogram(
    "rakit_ingest_duration_seconds",
    "Time from the upload of a knowledge file until it is processed.",
    [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600, 14_400],
  )

/** Made at the start, so that they are there before the first file. */
export const ingestMeters = (deps: Deps): void => {
  fileCounter(deps)
  chunkCounter(deps)
  tokenCounter(deps)
  durations(deps)
}

export const countReady = (
  deps: Deps & Pick<IngestDeps, "clock">,
  { chunks, tokens, created_at }: Pick<DocumentRow, "chunks" | "tokens" | "created_at">,
): void => {
  fileCounter(deps).add(1, { outcome: "processed" })
  chunkCounter(deps).add(chunks)
  tokenCounter(deps).add(Number(tokens))
  durations(deps).observe((deps.clock.nowMs() - created_at.getTime()) / 1000)
}

export const countFailed = (deps: Deps, code: IngestFailure["code"]): void =>
  fileCounter(deps).add(1, { outcome: code })

const unfinished = ["waiting", "extracting", "embedding"] as const

/** Looks up the files that have not ended; all processes of a database see the same. */
export const measureUnfinished = ({
  database,
  metrics,
}: Pick<IngestDeps, "database" | "metrics">): Effect.Effect<void, PortError> => {
  const files = metrics.gauge(
    "rakit_ingest_files",
    "Knowledge files that have not ended, by state; the same in all processes of a database.",
    ["state"],
  )
  return Effect.map(
    database.run(() =>
      sql<{ state: string; files: number }>`
        SELECT state, count(*)::int AS files FROM retrieval_document
        WHERE state IN ('waiting', 'extracting', 'embedding') GROUP BY state`.execute(
        database.queries(),
      ),
    ),
    ({ rows }) => {
      for (const state of unfinished)
        files.set(rows.find((row) => row.state === state)?.files ?? 0, { state })
    },
  )
}
