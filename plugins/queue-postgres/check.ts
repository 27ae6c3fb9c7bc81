import { Effect, Stream } from "effect"
import { type RawBuilder, sql } from "kysely"
import {
  type Clock,
  type ConsistencyCheck,
  type Database,
  type Finding,
  inPages,
  type PortError,
} from "../../core/index.ts"
import type { QueueTables } from "./tables.ts"

/** Live workers notice a lost lease within seconds, and due jobs sooner. */
const overdueMs = 3_600_000
const maxErrorShown = 200

export interface QueueCheckDeps {
  readonly database: Database
  readonly clock: Clock
  /** The names of this deployment's handlers. */
  readonly handlers: () => readonly string[]
}

interface Row {
  readonly id: string
  /** The handler's name. */
  readonly job: string
  readonly key: string | null
}

/** Each write does nothing when the row has changed meanwhile. */
const makeRows = ({ database, clock }: QueueCheckDeps) => {
  const run = <R>(query: RawBuilder<R>): Effect.Effect<readonly R[], PortError> =>
    Effect.map(
      database.run(() => query.execute(database.queries<QueueTables>())),
      ({ rows }) => rows,
    )
  const now = () => new Date(clock.nowMs())
  const overdue = () => new Date(clock.nowMs() - overdueMs)
  const count = (table: keyof QueueTables) =>
    Effect.map(
      run(sql<{ rows: bigint }>`SELECT count(*) AS rows FROM ${sql.table(table)}`),
      ([row]) => Number(row?.rows ?? 0),
    )
  const idAfter = (after: Row | undefined) => sql`id > ${after?.id ?? "0"}::bigint`
  return {
    count: Effect.all([count("queue_dead_letter"), count("queue_payload")]),
    dead: (after: Row | undefined, limit: number) =>
      run(
        sql<
          Row & { attempts: number; error: string }
        >`SELECT id::text, job, key, attempts, error FROM queue_dead_letter WHERE ${idAfter(after)} ORDER BY queue_dead_letter.id LIMIT ${limit}`,
      ),
    lost: (after: Row | undefined, limit: number) =>
      run(
        sql<Row>`SELECT id::text, job, key FROM queue_payload WHERE lease IS NOT NULL AND due_at <= ${overdue()} AND ${idAfter(after)} ORDER BY queue_payload.id LIMIT ${limit}`,
      ),
    unknown: (handlers: readonly string[]) => (after: Row | undefined, limit: number) =>
      run(
        sql<Row>`SELECT id::text, job, key FROM queue_payload WHERE lease IS NULL AND due_at <= ${overdue()} AND NOT job = ANY(${handlers}::text[]) AND ${idAfter(after)} ORDER BY queue_payload.id LIMIT ${limit}`,
      ),
    /** Queues the dead letter again, with the default priority. */
    revive: ({ id }: Row) =>
      Effect.asVoid(
        run(sql`
          WITH again AS (DELETE FROM queue_dead_letter WHERE id = ${id}::bigint RETURNING *)
          INSERT INTO queue_payload (job, payload, key, priority, due_at, created_at) SELECT job, payload, key, 0, ${now()}, created_at FROM again
          ON CONFLICT (job, key) WHERE key IS NOT NULL DO NOTHING`),
      ),
    release: ({ id }: Row) =>
      Effect.asVoid(
        run(
          sql`UPDATE queue_payload SET lease = NULL, due_at = ${now()} WHERE id = ${id}::bigint AND lease IS NOT NULL AND due_at <= ${overdue()}`,
        ),
      ),
  }
}

/** Returns the first line; the rest is a stack trace. */
const shown = (error: string): string => (error.split("\n")[0] ?? "").slice(0, maxErrorShown)

/** Names the key, too: a sender recognizes its jobs by it. */
const subjectOf = ({ id, job, key }: Row): string =>
  `payload ${id} of ${job}${key === null ? "" : `, key ${key}`}`

export const queueCheck = (deps: QueueCheckDeps): ConsistencyCheck => ({
  name: "queue",
  about:
    "no work has failed for the last time, lost its worker, or waits for one that this deployment does not have",
  findings: (looked) => {
    const rows = makeRows(deps)
    const handlers = deps.handlers()
    const all = <R extends Row>(
      page: (after: R | undefined, limit: number) => Effect.Effect<readonly R[], PortError>,
      findingOf: (row: R) => Finding,
    ) => inPages<R>({ page, judge: (found) => Effect.succeed(found.map(findingOf)) }, () => {})
    const dead = all(rows.dead, (row) => ({
      subject: subjectOf(row),
      problem: `it failed ${row.attempts} times and lies among the dead: ${shown(row.error)}`,
      ...(handlers.includes(row.job) && { remedy: "it is run again", repair: rows.revive(row) }),
    }))
    const lost = all(rows.lost, (row) => ({
      subject: subjectOf(row),
      problem: "its lease ended long ago, and nobody took it over",
      remedy: "it waits again",
      repair: rows.release(row),
    }))
    const unknown = all(rows.unknown(handlers), (row) => ({
      subject: subjectOf(row),
      problem:
        "it has waited for more than an hour, and no plugin of this deployment does such work",
    }))
    const counted = Effect.map(rows.count, ([letters, jobs]) => looked(letters + jobs))
    return Stream.fromEffectDrain(counted).pipe(
      Stream.concat(dead),
      Stream.concat(lost),
      Stream.concat(unknown),
    )
  },
})
