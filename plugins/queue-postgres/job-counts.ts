import { Effect } from "effect"
import { sql } from "kysely"
import type { Clock, Database, Metrics, PortError } from "../../core/index.ts"
import type { QueueTables } from "./tables.ts"

const states = ["waiting", "delayed", "running", "dead"] as const

interface Row extends Record<(typeof states)[number], number> {
  readonly job: string
}

/** By index, and of each job no more: counting must stay cheap however long the queue is. */
const mostCounted = 10_000

export interface JobCountDeps {
  readonly database: Database
  readonly clock: Clock
  readonly metrics: Metrics
  /** The names of this deployment's handlers. */
  readonly handlers: () => readonly string[]
}

/** Counts the jobs of each handler in the database; all processes see the same. */
export const measureJobs = ({
  database,
  clock,
  metrics,
  handlers,
}: JobCountDeps): Effect.Effect<void, PortError> => {
  const gauge = metrics.gauge(
    "rakit_queue_jobs",
    "Background jobs by state (waiting: due; delayed: due later; running; dead: failed for the last time), counted up to 10,000; the same in all processes of a database.",
    ["job", "state"],
  )
  const rows = (which: ReturnType<typeof sql>) =>
    sql`(SELECT count(*)::int FROM (SELECT FROM queue_payload AS q WHERE q.job = wanted.job AND ${which} LIMIT ${mostCounted}) AS counted)`
  return Effect.suspend(() => {
    const now = new Date(clock.nowMs())
    return Effect.map(
      database.run(() =>
        sql<Row>`
          SELECT job, ${rows(sql`lease IS NULL AND due_at <= ${now}`)} AS waiting, ${rows(sql`lease IS NULL AND due_at > ${now}`)} AS delayed,
            ${rows(sql`lease IS NOT NULL`)} AS running,
            (SELECT count(*)::int FROM queue_dead_letter AS d WHERE d.job = wanted.job) AS dead
          FROM unnest(${handlers()}::text[]) AS wanted (job)`.execute(
          database.queries<QueueTables>(),
        ),
      ),
      ({ rows: counted }) => {
        for (const row of counted)
          for (const state of states) gauge.set(row[state], { job: row.job, state })
      },
    )
  })
}
