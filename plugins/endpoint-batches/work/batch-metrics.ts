import { Effect, type Scope } from "effect"
import { sql } from "kysely"
import { type Json, type PortError, repeat } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import type { BatchTables } from "../tables.ts"
import type { LineResult } from "./run-line.ts"

/** The id of the model that a line's body names, if it is one of this deployment. */
export const modelOf = ({ catalogue }: BatchDeps, body: Json): string | undefined => {
  const model = (body as { readonly model?: Json } | null)?.model
  return typeof model === "string" ? catalogue.entry(model)?.id : undefined
}

/** Made at the start, so that it is there before the first line. */
export const lineCounter = ({ metrics }: BatchDeps) =>
  metrics.counter(
    "rakit_batch_lines_total",
    "Lines of batches whose answers are committed, by outcome: completed or failed.",
    ["model_name", "outcome"],
  )

/** Counts lines whose answers are committed. */
export const countLines = (deps: BatchDeps, results: readonly LineResult[]): void => {
  const lines = lineCounter(deps)
  for (const { model = "", ok } of results)
    lines.add(1, { model_name: model, outcome: ok ? "completed" : "failed" })
}

const unfinished = ["validating", "in_progress"] as const

/** Looks up the batches that have not ended; all processes of a database see the same. */
const measureBatches = ({ database, metrics }: BatchDeps): Effect.Effect<void, PortError> => {
  const batches = metrics.gauge(
    "rakit_batches",
    "Batches that have not ended, by status; the same in all processes of a database.",
    ["status"],
  )
  const waiting = metrics.gauge(
    "rakit_batch_lines_waiting",
    "Lines of unfinished batches without a committed answer; the same in all processes of a database.",
  )
  return Effect.map(
    database.run(() =>
      sql<{ status: string; batches: number; lines: number }>`
        SELECT status, count(*)::int AS batches, coalesce(sum(greatest(total - completed - failed, 0)), 0)::float8 AS lines
        FROM batches_batch WHERE ended_at IS NULL GROUP BY status`.execute(
        database.queries<BatchTables>(),
      ),
    ),
    ({ rows }) => {
      for (const status of unfinished)
        batches.set(rows.find((row) => row.status === status)?.batches ?? 0, { status })
      waiting.set(rows.reduce((sum, { lines }) => sum + lines, 0))
    },
  )
}

/** Every server counts them: one that only answers clients is asked about them, too. */
export const keepMeasured = (deps: BatchDeps): Effect.Effect<void, never, Scope.Scope> =>
  repeat(
    deps.log,
    {
      event: "batch.measure_failed",
      message: "unfinished batches could not be counted",
      everyMs: 5_000,
    },
    measureBatches(deps),
  )
