import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { type Kysely, sql } from "kysely"
import type { Clock, Database, JobHandler, PortError, Transaction } from "../../core/index.ts"
import type { QueueTables } from "./tables.ts"

export interface NewJob {
  /** The handler's name. */
  readonly handler: string
  /** The encoded job: JSON text. */
  readonly payload: string
  readonly key: string | undefined
  readonly priority: number
  readonly delayMs: number
}

/** A job and the lease on it: the right to run it. */
export interface ClaimedJob {
  readonly id: string
  readonly lease: string
  readonly payload: string
  readonly attempts: number
}

/**
 * When a handler's next job is due, and when the next lease on one of its jobs ends. Infinity for
 * never.
 */
export interface NextTimes {
  readonly dueMs: number
  /** Jobs that are due and wait, counted up to `mostCounted`. */
  readonly depth: number
  readonly leaseEndMs: number
}

export type HandlerTerms = Pick<JobHandler, "name" | "attempts" | "leaseMs">

const lostLease = "its worker was lost: the lease ended"
const maxErrorLength = 4_000
/** PostgreSQL's text cannot hold NUL. */
const storable = (error: string): string => error.replaceAll("\0", "").slice(0, maxErrorLength)

/** Moves the jobs that `which` selects to the dead letters. Returns the number of moved rows. */
const bury = async (
  db: Kysely<QueueTables>,
  which: ReturnType<typeof sql>,
  error: string,
  now: Date,
): Promise<number> => {
  const { numAffectedRows = 0n } = await sql`
    WITH gone AS (DELETE FROM queue_payload WHERE ${which} RETURNING *)
    INSERT INTO queue_dead_letter (id, job, payload, key, attempts, error, created_at, died_at)
    SELECT id, job, payload, key, attempts, ${error}, created_at, ${now} FROM gone`.execute(db)
  return Number(numAffectedRows)
}

const claimRows = async (
  db: Kysely<QueueTables>,
  { name, leaseMs }: HandlerTerms,
  limit: number,
  nowMs: number,
): Promise<readonly ClaimedJob[]> => {
  const lease = randomUUID()
  const { rows } = await sql<{ id: string; payload: string; attempts: number }>`
    WITH next AS MATERIALIZED (
      SELECT id, row_number() OVER () AS place FROM (
        SELECT id FROM queue_payload WHERE job = ${name} AND lease IS NULL AND due_at <= ${new Date(nowMs)}
        ORDER BY priority DESC, due_at, id LIMIT ${limit} FOR UPDATE SKIP LOCKED) AS locked),
    taken AS (
      UPDATE queue_payload AS q SET lease = ${lease}, due_at = ${new Date(nowMs + leaseMs)}, attempts = q.attempts + 1 FROM next WHERE q.id = next.id
      RETURNING q.id, q.payload, q.attempts, next.place)
    SELECT id::text, payload, attempts FROM taken ORDER BY place`.execute(db)
  return rows.map((row) => ({ ...row, lease }))
}

const renewRows = async (
  db: Kysely<QueueTables>,
  claims: readonly ClaimedJob[],
  until: Date,
): Promise<ReadonlySet<string>> => {
  const { rows } = await sql<{ id: string }>`
    UPDATE queue_payload SET due_at = ${until}
    WHERE (id, lease) IN (SELECT * FROM unnest(${claims.map(({ id }) => id)}::bigint[], ${claims.map(({ lease }) => lease)}::uuid[]))
    RETURNING id::text`.execute(db)
  return new Set(rows.map(({ id }) => id))
}

const mostCounted = 1_000

/** Index look-ups: the cost does not depend on the number of waiting jobs. */
const nextRows = async (
  db: Kysely<QueueTables>,
  handlers: readonly string[],
  now: Date,
): Promise<ReadonlyMap<string, NextTimes>> => {
  const { rows } = await sql<{
    job: string
    due: Date | null
    depth: number
    lease_end: Date | null
  }>`
    SELECT job,
      (SELECT min(due_at) FROM queue_payload AS q WHERE q.job = wanted.job AND lease IS NULL) AS due,
      (SELECT count(*)::int FROM (SELECT FROM queue_payload AS q WHERE q.job = wanted.job AND lease IS NULL AND due_at <= ${now} LIMIT ${mostCounted}) AS waiting) AS depth,
      (SELECT min(due_at) FROM queue_payload AS q WHERE q.job = wanted.job AND lease IS NOT NULL) AS lease_end
    FROM unnest(${handlers}::text[]) AS wanted (job)`.execute(db)
  return new Map(
    rows.map(({ job, due, depth, lease_end }) => [
      job,
      {
        depth,
        dueMs: due?.getTime() ?? Number.POSITIVE_INFINITY,
        leaseEndMs: lease_end?.getTime() ?? Number.POSITIVE_INFINITY,
      },
    ]),
  )
}

interface Deps {
  readonly database: Database
  readonly db: (tx?: Transaction) => Kysely<QueueTables>
  /** Now, plus so many milliseconds. */
  readonly at: (plusMs?: number) => Date
}

const sending = ({ database, db, at }: Deps) => ({
  insert: (
    { handler, payload, key, priority, delayMs }: NewJob,
    tx?: Transaction,
  ): Effect.Effect<void, PortError> =>
    Effect.asVoid(
      database.run(() =>
        sql`INSERT INTO queue_payload (job, payload, key, priority, due_at, created_at) VALUES (${handler}, ${payload}, ${key ?? null}, ${priority}, ${at(delayMs)}, ${at()})
              ON CONFLICT (job, key) WHERE key IS NOT NULL DO NOTHING`.execute(db(tx)),
      ),
    ),
  held: (handler: string, keys: readonly string[]): Effect.Effect<ReadonlySet<string>, PortError> =>
    Effect.map(
      database.run(() =>
        db()
          .selectFrom("queue_payload")
          .select("key")
          .where("job", "=", handler)
          .where("key", "in", keys)
          .execute(),
      ),
      (rows) => new Set(rows.flatMap(({ key }) => key ?? [])),
    ),
})

const leasing = ({ database, db, at }: Deps) => ({
  /** Claims up to `limit` due jobs, the most urgent first. */
  claim: (handler: HandlerTerms, limit: number) =>
    database.run(() => claimRows(db(), handler, limit, at().getTime())),
  /** Returns the ids of the jobs whose lease is still ours. */
  renew: (claims: readonly ClaimedJob[], untilMs: number) =>
    database.run(() => renewRows(db(), claims, new Date(untilMs))),
  next: (handlers: readonly string[]) => database.run(() => nextRows(db(), handlers, at())),
  /** Releases or buries the jobs whose lease has ended. Returns the number of buried jobs. */
  expire: ({ name, attempts }: HandlerTerms) =>
    database.run(async () => {
      const lost = sql`job = ${name} AND lease IS NOT NULL AND due_at <= ${at()}`
      const dead = await bury(db(), sql`${lost} AND attempts >= ${attempts}`, lostLease, at())
      await sql`UPDATE queue_payload SET lease = NULL, due_at = ${at()}, error = ${lostLease} WHERE ${lost}`.execute(
        db(),
      )
      return dead
    }),
})

/** How a run ends. Each write does nothing when the lease is no longer ours. */
const ending = ({ database, db, at }: Deps) => {
  const ours = ({ id, lease }: ClaimedJob) => ({ id, lease })
  /** Returns whether the lease was still ours. */
  const putBack = (
    claimed: ClaimedJob,
    set: { readonly due_at: Date; readonly attempts?: number; readonly error?: string },
  ): Effect.Effect<boolean, PortError> =>
    Effect.map(
      database.run(() =>
        db()
          .updateTable("queue_payload")
          .set({ ...set, lease: null })
          .where((eb) => eb.and(ours(claimed)))
          .executeTakeFirst(),
      ),
      ({ numUpdatedRows }) => numUpdatedRows > 0n,
    )
  return {
    done: (claimed: ClaimedJob): Effect.Effect<void, PortError> =>
      Effect.asVoid(
        database.run(() =>
          db()
            .deleteFrom("queue_payload")
            .where((eb) => eb.and(ours(claimed)))
            .execute(),
        ),
      ),
    retry: (claimed: ClaimedJob, error: string, delayMs: number) =>
      putBack(claimed, { due_at: at(delayMs), error: storable(error) }),
    /** A shutdown is not a failure, so the run does not count as an attempt. */
    release: (claimed: ClaimedJob) =>
      putBack(claimed, { due_at: at(), attempts: claimed.attempts - 1 }),
    bury: (claimed: ClaimedJob, error: string) =>
      database.run(() =>
        bury(db(), sql`id = ${claimed.id} AND lease = ${claimed.lease}`, storable(error), at()),
      ),
  }
}

const sweeping = ({ database, db, at }: Deps) => ({
  /** Deletes the dead letters that are older than `keepMs`. Returns the number of deleted rows. */
  sweep: (keepMs: number) =>
    Effect.map(
      database.run(() =>
        db().deleteFrom("queue_dead_letter").where("died_at", "<=", at(-keepMs)).executeTakeFirst(),
      ),
      ({ numDeletedRows }) => Number(numDeletedRows),
    ),
})

/**
 * States of a job: waiting (no lease) -> leased -> (deleted: done) | waiting (failed, released, or
 * its lease ended) |
 * dead (failed, or lost its lease, for the last time) -> (deleted: swept).
 */
export const makeJobRows = (database: Database, clock: Clock) => {
  const deps: Deps = {
    database,
    db: (tx) => database.queries<QueueTables>(tx),
    at: (plusMs = 0) => new Date(clock.nowMs() + plusMs),
  }
  return { ...sending(deps), ...leasing(deps), ...ending(deps), ...sweeping(deps) }
}
export type JobRows = ReturnType<typeof makeJobRows>
