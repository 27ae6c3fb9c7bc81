import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { type Kysely, sql } from "kysely"
import type { Clock, Database, Job, PortError, Transaction } from "../../core/index.ts"

export interface QueueTables {
  readonly queue_payload: {
    readonly id: string
    readonly job: string
    readonly payload: string
    readonly key: string | null
    readonly priority: number
    /** Runs that were begun. */
    readonly attempts: number
    /** When it may run; while it is leased, when its lease ends. */
    readonly due_at: Date
    /** Who runs it; null while it waits. */
    readonly lease: string | null
    /** Of the last run that failed. */
    readonly error: string | null
    readonly created_at: Date
  }
  readonly queue_dead_letter: {
    readonly id: string
    readonly job: string
    readonly payload: string
    readonly key: string | null
    readonly attempts: number
    readonly error: string
    readonly created_at: Date
    readonly died_at: Date
  }
}

export interface NewPayload {
  readonly job: string
  readonly payload: string
  readonly key: string | undefined
  readonly priority: number
  readonly delayMs: number
}

/** The right to run one payload. */
export interface Claimed {
  readonly id: string
  readonly lease: string
  readonly payload: string
  readonly attempts: number
}

/** When the next payload of a job is due, and when the next lease ends. */
export interface Next {
  readonly dueMs: number
  readonly lostMs: number
}

/** What a job says of itself to the table. */
export type Kind = Pick<Job, "name" | "attempts" | "leaseMs">

const lostLease = "its worker was lost: the lease ended"
const maxErrorLength = 4_000
/** NUL is no text to PostgreSQL. */
const tellable = (error: string): string => error.replaceAll("\0", "").slice(0, maxErrorLength)

/** Deletes what `which` names and keeps it as dead. Answers how many. */
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
  { name, leaseMs }: Kind,
  limit: number,
  nowMs: number,
): Promise<readonly Claimed[]> => {
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
  claims: readonly Claimed[],
  until: Date,
): Promise<ReadonlySet<string>> => {
  const { rows } = await sql<{ id: string }>`
    UPDATE queue_payload SET due_at = ${until}
    WHERE (id, lease) IN (SELECT * FROM unnest(${claims.map(({ id }) => id)}::bigint[], ${claims.map(({ lease }) => lease)}::uuid[]))
    RETURNING id::text`.execute(db)
  return new Set(rows.map(({ id }) => id))
}

/** Index look-ups, two a job: how many wait does not matter. */
const nextRows = async (
  db: Kysely<QueueTables>,
  jobs: readonly string[],
): Promise<ReadonlyMap<string, Next>> => {
  const { rows } = await sql<{ job: string; due: Date | null; lost: Date | null }>`
    SELECT job,
      (SELECT min(due_at) FROM queue_payload AS q WHERE q.job = wanted.job AND lease IS NULL) AS due,
      (SELECT min(due_at) FROM queue_payload AS q WHERE q.job = wanted.job AND lease IS NOT NULL) AS lost
    FROM unnest(${jobs}::text[]) AS wanted (job)`.execute(db)
  return new Map(
    rows.map(({ job, due, lost }) => [
      job,
      {
        dueMs: due?.getTime() ?? Number.POSITIVE_INFINITY,
        lostMs: lost?.getTime() ?? Number.POSITIVE_INFINITY,
      },
    ]),
  )
}

/**
 * States of a payload: waiting (no lease) -> leased -> (none: done) | waiting (failed, released, or its lease ended) | dead (failed, or lost its lease, for the last time) -> (none: swept).
 * Whoever does not hold the lease any more changes nothing.
 */
export const makePayloadRows = (database: Database, clock: Clock) => {
  const db = (tx?: Transaction) => database.queries<QueueTables>(tx)
  const mine = ({ id, lease }: Claimed) => ({ id, lease })
  const at = (plusMs = 0) => new Date(clock.nowMs() + plusMs)
  const setMine = (
    claimed: Claimed,
    set: { readonly due_at: Date; readonly attempts?: number; readonly error?: string },
  ): Effect.Effect<boolean, PortError> =>
    Effect.map(
      database.run(() =>
        db()
          .updateTable("queue_payload")
          .set({ ...set, lease: null })
          .where((eb) => eb.and(mine(claimed)))
          .executeTakeFirst(),
      ),
      ({ numUpdatedRows }) => numUpdatedRows > 0n,
    )
  return {
    insert: (
      { job, payload, key, priority, delayMs }: NewPayload,
      tx?: Transaction,
    ): Effect.Effect<void, PortError> =>
      Effect.asVoid(
        database.run(() =>
          sql`INSERT INTO queue_payload (job, payload, key, priority, due_at, created_at) VALUES (${job}, ${payload}, ${key ?? null}, ${priority}, ${at(delayMs)}, ${at()})
              ON CONFLICT (job, key) WHERE key IS NOT NULL DO NOTHING`.execute(db(tx)),
        ),
      ),
    held: (job: string, keys: readonly string[]): Effect.Effect<ReadonlySet<string>, PortError> =>
      Effect.map(
        database.run(() =>
          db()
            .selectFrom("queue_payload")
            .select("key")
            .where("job", "=", job)
            .where("key", "in", keys)
            .execute(),
        ),
        (rows) => new Set(rows.flatMap(({ key }) => key ?? [])),
      ),
    /** Up to `limit` that are due, the most urgent first. */
    claim: (kind: Kind, limit: number) =>
      database.run(() => claimRows(db(), kind, limit, clock.nowMs())),
    /** Answers the ids of those that are still held. */
    renew: (claims: readonly Claimed[], untilMs: number) =>
      database.run(() => renewRows(db(), claims, new Date(untilMs))),

    next: (jobs: readonly string[]) => database.run(() => nextRows(db(), jobs)),
    /** Puts back, or buries, what lost its worker. Answers how many died. */
    expire: ({ name, attempts }: Kind) =>
      database.run(async () => {
        const lost = sql`job = ${name} AND lease IS NOT NULL AND due_at <= ${at()}`
        const dead = await bury(db(), sql`${lost} AND attempts >= ${attempts}`, lostLease, at())
        await sql`UPDATE queue_payload SET lease = NULL, due_at = ${at()}, error = ${lostLease} WHERE ${lost}`.execute(
          db(),
        )
        return dead
      }),
    done: (claimed: Claimed): Effect.Effect<void, PortError> =>
      Effect.asVoid(
        database.run(() =>
          db()
            .deleteFrom("queue_payload")
            .where((eb) => eb.and(mine(claimed)))
            .execute(),
        ),
      ),
    retry: (claimed: Claimed, error: string, delayMs: number) =>
      setMine(claimed, { due_at: at(delayMs), error: tellable(error) }),
    /** A stop is no failure, so the run does not count. */
    release: (claimed: Claimed) =>
      setMine(claimed, { due_at: at(), attempts: claimed.attempts - 1 }),
    bury: (claimed: Claimed, error: string) =>
      database.run(() =>
        bury(db(), sql`id = ${claimed.id} AND lease = ${claimed.lease}`, tellable(error), at()),
      ),
    /** Deletes the dead that are older than `keepMs`; answers how many. */
    sweep: (keepMs: number) =>
      Effect.map(
        database.run(() =>
          db()
            .deleteFrom("queue_dead_letter")
            .where("died_at", "<=", at(-keepMs))
            .executeTakeFirst(),
        ),
        ({ numDeletedRows }) => Number(numDeletedRows),
      ),
  }
}
export type PayloadRows = ReturnType<typeof makePayloadRows>
