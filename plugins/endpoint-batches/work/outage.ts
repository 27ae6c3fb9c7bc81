import { Effect } from "effect"
import { sql } from "kysely"
import type { PortError, StorageError } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import { type Committed, commitLines } from "./commit.ts"
import type { Lease } from "./lease.ts"
import type { LineResult } from "./run-line.ts"

const firstMs = 250
const longestMs = 5_000

/** The database or the disk is away: it comes back, and what is done waits for it. */
export const isOutage = (error: StorageError): boolean =>
  error._tag === "StorageFull" ||
  (error._tag === "PortError" && (error.why === "unavailable" || error.why === "full"))

export interface OutageWait {
  readonly deps: BatchDeps
  readonly batch: string
  /** There is nothing to wait for any more. */
  readonly isOver: () => boolean
  /** A sleep that can be interrupted. */
  readonly sleep: (ms: number) => Effect.Effect<void>
}

/** Runs `work`, and `again` for as long as an outage lasts. */
export const throughOutage = <A, E extends StorageError>(
  { deps, batch, isOver, sleep }: OutageWait,
  work: Effect.Effect<A, E>,
  again: Effect.Effect<A, E> = work,
): Effect.Effect<A, E> => {
  const attempt = (run: Effect.Effect<A, E>, ms: number): Effect.Effect<A, E> =>
    Effect.catch(run, (error) => {
      if (!isOutage(error) || isOver()) return Effect.fail(error)
      if (ms === firstMs)
        deps.log.warn("batch.waits_for_outage", "a batch waits until database and disk are back", {
          batch,
          reason: error._tag === "PortError" ? error.message : "the disk is full",
        })
      return Effect.andThen(
        sleep(ms),
        Effect.suspend(() => attempt(again, Math.min(2 * ms, longestMs))),
      )
    })
  return attempt(work, firstMs)
}

/** A commit without an answer may have been made: all of its lines, or none. */
const isCommitted = (
  { database }: BatchDeps,
  { id }: Lease,
  results: readonly LineResult[],
): Effect.Effect<boolean, PortError> =>
  Effect.map(
    database.run(() =>
      sql`SELECT FROM batches_line WHERE batch_id = ${id} AND line = ANY(${results.map(({ line }) => line)}::int[]) LIMIT 1`.execute(
        database.queries(),
      ),
    ),
    ({ rows }) => rows.length > 0,
  )

/** The answers and what they cost wait for the end of an outage. */
export const commitThroughOutage = (
  wait: OutageWait,
  lease: Lease,
  results: readonly LineResult[],
): Effect.Effect<Committed, PortError> => {
  const commit = commitLines(wait.deps, lease, results)
  const again = Effect.flatMap(isCommitted(wait.deps, lease, results), (was) =>
    was ? Effect.succeed<Committed>("kept") : commit,
  )
  return throughOutage(wait, commit, again)
}
