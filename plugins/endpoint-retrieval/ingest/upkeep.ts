import { Effect, type Scope } from "effect"
import { sql } from "kysely"
import { type PortError, repeat, repeatInTurn } from "../../../core/index.ts"
import { tenantOf } from "../documents/claim.ts"
import type { DocumentRow, RetrievalTables } from "../tables.ts"
import type { VectorSpace } from "../vectors/space.ts"
import { currentSpace } from "./current-space.ts"
import { failDocument } from "./fail-document.ts"
import { tooSlow } from "./failure.ts"
import type { IngestDeps } from "./ingest-deps.ts"
import { ingestMeters, measureUnfinished } from "./ingest-metrics.ts"
import { sendIngest, sendReindex, withJobs } from "./send-job.ts"
import { sweepRemoved } from "./sweep-removed.ts"

const hourMs = 3_600_000
const rowsPerTurn = 200

const unfinishedAfter = ({ database }: IngestDeps, after: bigint, createdBefore: Date) =>
  database.run(() =>
    database
      .queries<RetrievalTables>()
      .selectFrom("retrieval_document")
      .selectAll()
      .where("state", "in", ["waiting", "extracting", "embedding"])
      .where("no", ">", after)
      .where("created_at", "<=", createdBefore)
      .orderBy("no")
      .limit(rowsPerTurn)
      .execute(),
  )

/** A file without a job would wait for ever; one beyond its deadline fails though nobody runs it. */
const lookAfter = (deps: IngestDeps, rows: readonly DocumentRow[]) =>
  Effect.gen(function* () {
    const { clock, settings } = deps
    const held = yield* withJobs(
      deps,
      rows.map(({ file_id }) => file_id),
    )
    let sent = 0
    for (const row of rows) {
      const isOver = clock.nowMs() >= row.created_at.getTime() + settings.ingestHours * hourMs
      if (isOver)
        yield* Effect.catchTag(
          failDocument(deps, row, tooSlow(settings.ingestHours)),
          "Superseded",
          () => Effect.void,
        )
      else if (!held.has(row.file_id)) {
        yield* sendIngest(deps, tenantOf(row), "short", { file: row.file_id })
        sent++
      }
    }
    return sent
  })

/** Upload, document and job are one commit: younger ones can't have lost theirs. */
const youngMs = 60_000

/** Returns the number of files that had lost their job. */
export const rescue = (deps: IngestDeps): Effect.Effect<number, PortError> =>
  Effect.gen(function* () {
    const before = new Date(deps.clock.nowMs() - youngMs)
    let sent = 0
    for (let after = 0n; ; ) {
      const rows = yield* unfinishedAfter(deps, after, before)
      sent += yield* lookAfter(deps, rows)
      if (rows.length < rowsPerTurn) return sent
      after = rows.at(-1)!.no
    }
  })

const outdatedAfter = ({ database }: IngestDeps, after: bigint, space: VectorSpace) =>
  database.run(() =>
    database
      .queries<RetrievalTables>()
      .selectFrom("retrieval_document")
      .select(["no", "file_id", "chunks"])
      .where("state", "=", "ready")
      .where("no", ">", after)
      .where(
        sql<boolean>`(space, dimensions) IS DISTINCT FROM (${space.id}::text, ${space.dimensions}::int)`,
      )
      .orderBy("no")
      .limit(rowsPerTurn)
      .execute(),
  )

/**
 * Sends ready documents that are in another space than the model's: about a page, past those that
 * have a job, which may break off again and again. Returns the number of outdated ones it has seen.
 */
export const sendOutdated = (deps: IngestDeps): Effect.Effect<number, PortError> =>
  Effect.gen(function* () {
    // while the model loads it is not known
    const space = yield* Effect.catch(currentSpace(deps), () => Effect.succeed(undefined))
    if (!space) return 0
    let [after, seen, sent] = [0n, 0, 0]
    for (;;) {
      const rows = yield* outdatedAfter(deps, after, space)
      const held = yield* withJobs(
        deps,
        rows.map(({ file_id }) => file_id),
      )
      const unsent = rows.filter(({ file_id }) => !held.has(file_id))
      yield* Effect.forEach(unsent, (row) => sendReindex(deps, row), { discard: true })
      seen += rows.length
      sent += unsent.length
      if (rows.length < rowsPerTurn || sent >= rowsPerTurn) return seen
      after = rows.at(-1)!.no
    }
  })

const soonMs = 5_000
const laterMs = 60_000

/** Sweeps, rescues and moves to other spaces until the Scope closes. Every worker does. */
export const keepUp = (deps: IngestDeps): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { log } = deps
    let outdated = 0
    ingestMeters(deps)
    yield* repeatInTurn(log, [
      [
        {
          event: "retrieval.sweep_failed",
          message: "rows of deleted knowledge files could not be dropped",
          everyMs: soonMs,
          isDelayed: true,
        },
        sweepRemoved(deps),
      ],
      [
        {
          event: "retrieval.rescue_failed",
          message: "knowledge files without a job could not be looked for",
          everyMs: laterMs,
        },
        Effect.map(rescue(deps), (files) => {
          if (files > 0)
            log.warn("retrieval.files_rescued", "knowledge files had lost their jobs", { files })
        }),
      ],
      [
        {
          event: "retrieval.reindex_failed",
          message: "knowledge files of another embedding space could not be looked for",
          everyMs: () => (outdated > 0 ? soonMs : laterMs),
          isDelayed: true,
        },
        Effect.map(sendOutdated(deps), (files) => {
          if (files > 0 && outdated === 0)
            log.info("retrieval.reindex_begun", "knowledge files move to another embedding space")
          outdated = files
        }),
      ],
    ])
  })

/** Every server counts them: one that only answers clients is asked about them, too. */
export const keepMeasured = (deps: IngestDeps): Effect.Effect<void, never, Scope.Scope> =>
  repeat(
    deps.log,
    {
      event: "retrieval.measure_failed",
      message: "unfinished knowledge files could not be counted",
      everyMs: soonMs,
    },
    measureUnfinished(deps),
  )
