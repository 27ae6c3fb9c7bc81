import { createHash } from "node:crypto"
import { Data, Effect } from "effect"
import { type Kysely, sql } from "kysely"
import type { Clock, Database, PortError, Transaction } from "../../../core/index.ts"
import type { AccountsTables } from "../tables.ts"

/** At most `max` attempts of one kind and subject in any window of `windowMs`. */
export interface Limit {
  readonly kind: string
  readonly subject: readonly string[]
  readonly max: number
  readonly windowMs: number
}

/**
 * Rate limits that are exact across all servers of a database: each subject has a row, whose lock
 * serializes attempts.
 */
export interface Limiter {
  /**
   * Counts an attempt toward all limits, or toward none if one is used up. Returns 0, or the ms to
   * wait before the next attempt.
   */
  take(limits: readonly Limit[]): Effect.Effect<number, PortError>
  /** The same for one limit, within a transaction. */
  takeIn(limit: Limit, tx: Transaction): Effect.Effect<number, PortError>
  /** Returns what `take` would return now, without counting. */
  peek(limits: readonly Limit[]): Effect.Effect<number, PortError>
}

class Full extends Data.TaggedError("Full")<{ readonly waitMs: number }> {}

const bucketOf = ({ kind, subject }: Limit): Buffer =>
  createHash("sha256")
    .update(JSON.stringify([kind, ...subject]))
    .digest()

type Row = Pick<AccountsTables["accounts_attempt"], "at_ms" | "taken">

const takeRow = (db: Kysely<AccountsTables>, limit: Limit, nowMs: number) => {
  const { max, windowMs } = limit
  const expiresAt = new Date(nowMs + windowMs)
  return sql<Row>`
    INSERT INTO accounts_attempt AS a (bucket, at_ms, taken, expires_at) VALUES (${bucketOf(limit)}, ARRAY[${nowMs}::bigint], true, ${expiresAt})
    ON CONFLICT (bucket) DO UPDATE SET (at_ms, taken, expires_at) = (
      SELECT
        CASE WHEN cardinality(recent) < ${max} THEN recent || ${nowMs}::bigint ELSE recent END,
        cardinality(recent) < ${max},
        CASE WHEN cardinality(recent) < ${max} THEN ${expiresAt} ELSE a.expires_at END
      FROM (SELECT ARRAY(SELECT ms FROM unnest(a.at_ms) WITH ORDINALITY AS u (ms, n) WHERE ms > ${nowMs}::bigint - ${windowMs}::bigint ORDER BY n) AS recent) AS r)
    RETURNING a.at_ms, a.taken`.execute(db)
}

/** The ms until the oldest of the `max` newest attempts leaves the window. */
const waitOf = (atMs: readonly bigint[], { max, windowMs }: Limit, nowMs: number): number =>
  Math.max(1, Number(atMs.at(-max) ?? nowMs) + windowMs - nowMs)

export const makeLimiter = (database: Database, clock: Clock): Limiter => {
  const takeOne = (
    limit: Limit,
    nowMs: number,
    tx: Transaction,
  ): Effect.Effect<number, PortError> =>
    Effect.map(
      database.run(() => takeRow(database.queries<AccountsTables>(tx), limit, nowMs)),
      ({ rows: [row] }) => (row && !row.taken ? waitOf(row.at_ms, limit, nowMs) : 0),
    )
  const takeAll = (
    limits: readonly Limit[],
    nowMs: number,
    tx: Transaction,
  ): Effect.Effect<void, Full | PortError> =>
    Effect.forEach(
      limits,
      (limit) =>
        Effect.flatMap(takeOne(limit, nowMs, tx), (waitMs) =>
          waitMs > 0 ? Effect.fail(new Full({ waitMs })) : Effect.void,
        ),
      { discard: true },
    )
  const peekOne = (limit: Limit, nowMs: number): Effect.Effect<number, PortError> =>
    Effect.map(
      database.run(() =>
        database
          .queries<AccountsTables>()
          .selectFrom("accounts_attempt")
          .select("at_ms")
          .where("bucket", "=", bucketOf(limit))
          .executeTakeFirst(),
      ),
      (row) => {
        const recent = (row?.at_ms ?? []).filter((ms) => Number(ms) > nowMs - limit.windowMs)
        return recent.length < limit.max ? 0 : waitOf(recent, limit, nowMs)
      },
    )
  return {
    take: (limits) =>
      Effect.suspend(() => {
        const nowMs = clock.nowMs()
        return database
          .transaction((tx) => takeAll(limits, nowMs, tx))
          .pipe(
            Effect.as(0),
            Effect.catchTag("Full", ({ waitMs }) => Effect.succeed(waitMs)),
          )
      }),
    takeIn: (limit, tx) => Effect.suspend(() => takeOne(limit, clock.nowMs(), tx)),
    peek: (limits) =>
      Effect.suspend(() => {
        const nowMs = clock.nowMs()
        return Effect.map(
          Effect.forEach(limits, (limit) => peekOne(limit, nowMs)),
          (waits) => Math.max(0, ...waits),
        )
      }),
  }
}
